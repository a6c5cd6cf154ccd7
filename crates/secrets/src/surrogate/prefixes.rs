//! The prefixes by which issuers mark their credentials, and by which programs recognise them.

/// Kept in surrogates. The longest that fits counts, so the order is for readers.
pub(super) const PREFIXES: &[&str] = &[
    // Anthropic
    "sk-ant-",
    "sk-ant-admin01-",
    "sk-ant-api03-",
    "sk-ant-oat01-",
    "sk-ant-ort01-",
    "sk-ant-sid01-",
    // Atlassian
    "ATATT3",
    "ATCTT3",
    // AWS
    "AKIA",
    "ASIA",
    // Buildkite
    "bkua_",
    // CircleCI
    "CCIPAT_",
    // Databricks
    "dapi",
    // DigitalOcean
    "doo_v1_",
    "dop_v1_",
    "dor_v1_",
    // Docker
    "dckr_oat_",
    "dckr_pat_",
    // Doppler
    "dp.pt.",
    "dp.st.",
    // Figma
    "figd_",
    // GitHub
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    // GitLab
    "glagent-",
    "glcbt-",
    "gldt-",
    "glffct-",
    "glft-",
    "glimt-",
    "gloas-",
    "glpat-",
    "glptt-",
    "glrt-",
    "glrtr-",
    "glsoat-",
    // Google
    "AIza",
    "GOCSPX-",
    "ya29.",
    // Grafana
    "glc_",
    "glsa_",
    // Groq
    "gsk_",
    // HashiCorp Vault
    "hvb.",
    "hvr.",
    "hvs.",
    // Hugging Face
    "api_org_",
    "hf_",
    // LangSmith
    "lsv2_pt_",
    "lsv2_sk_",
    // Linear
    "lin_api_",
    "lin_oauth_",
    // Netlify
    "nfp_",
    // New Relic
    "NRAK-",
    // Notion
    "ntn_",
    // npm
    "npm_",
    // OpenAI
    "sk-",
    "sk-admin-",
    "sk-proj-",
    "sk-svcacct-",
    // OpenRouter
    "sk-or-v1-",
    // Perplexity
    "pplx-",
    // PlanetScale
    "pscale_pw_",
    "pscale_tkn_",
    // Postman
    "PMAK-",
    // Pulumi
    "pul-",
    // Python package index
    "pypi-",
    // Replicate
    "r8_",
    // RubyGems
    "rubygems_",
    // SendGrid
    "SG.",
    // Sentry
    "sntrys_",
    "sntryu_",
    // Shopify
    "shpat_",
    "shpca_",
    "shppa_",
    "shpss_",
    // Slack
    "xapp-",
    "xoxa-",
    "xoxb-",
    "xoxc-",
    "xoxd-",
    "xoxe-",
    "xoxe.xoxb-",
    "xoxe.xoxp-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xwfp-",
    // Stripe
    "pk_live_",
    "pk_test_",
    "rk_live_",
    "rk_test_",
    "sk_live_",
    "sk_test_",
    "whsec_",
    // Supabase
    "sb_publishable_",
    "sb_secret_",
    "sbp_",
    // Tavily
    "tvly-",
    // xAI
    "xai-",
];
