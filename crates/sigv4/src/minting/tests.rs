use super::*;
use crate::Field;

fn verdict(service: &str, authority: &str, target: &str, headers: &[Field<'_>]) -> Verdict {
    let head = Head {
        method: "POST",
        target,
        authority,
        headers,
    };
    judge(&head, (!service.is_empty()).then_some(service))
}

#[test]
fn operations_are_recognised_wherever_they_are_named() {
    use Verdict::Mints;
    let target = |value: &'static [u8]| [("x-amz-target", value)];
    for (found, expected) in [
        (
            verdict(
                "sts",
                "sts.amazonaws.com",
                "/?Action=AssumeRole&Version=1",
                &[],
            ),
            Mints("AssumeRole"),
        ),
        (
            verdict(
                "sts",
                "sts.amazonaws.com",
                "/?Version=1&act%69on=get%53essionToken",
                &[],
            ),
            Mints("GetSessionToken"),
        ),
        (
            verdict(
                "ecr",
                "api.ecr.eu-west-1.amazonaws.com",
                "/",
                &target(b"AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"),
            ),
            Mints("GetAuthorizationToken"),
        ),
        (
            verdict(
                "",
                "cognito-identity.eu-west-1.amazonaws.com",
                "/",
                &target(b"AWSCognitoIdentityService.GetCredentialsForIdentity"),
            ),
            Mints("GetCredentialsForIdentity"),
        ),
        (
            verdict(
                "codeartifact",
                "x",
                "//v1/./x/%2e%2e/authorization%2Dtoken?domain=d",
                &[],
            ),
            Mints("GetAuthorizationToken"),
        ),
        (
            verdict(
                "sts",
                "x",
                "/service/STS/operation/AssumeRoleWithWebIdentity",
                &[],
            ),
            Mints("AssumeRole"),
        ),
        (
            verdict("s3express", "b--x-s3.amazonaws.com", "/?s%65ssion", &[]),
            Mints("CreateSession"),
        ),
        (
            verdict("gamelift", "x", "/", &target(b"GameLift.CreateBuild")),
            Mints("CreateBuild"),
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn services_that_name_the_operation_in_the_body_need_the_body() {
    for (service, authority) in [
        ("sts", "sts.eu-west-1.amazonaws.com"),
        ("iam", "iam.amazonaws.com"),
        ("", "sts-fips.us-east-1.amazonaws.com"),
        ("redshift", "x"),
    ] {
        assert_eq!(verdict(service, authority, "/", &[]), Verdict::NeedsBody);
    }
    assert_eq!(
        verdict("sts", "x", "/", &[("content-encoding", b"gzip")]),
        Verdict::Unreadable
    );
}

#[test]
fn a_body_is_searched_as_a_form() {
    for body in [
        "Action=AssumeRole&Version=2011-06-15",
        "Version=2011-06-15&Action=GetFederationToken",
        "%41ction=%41ssumeRole",
        "Action=GetCallerIdentity&Action=CreateAccessKey",
        "action=createaccesskey",
        "x=1;Action=AssumeRoot",
        "Action=AssumeRole+",
    ] {
        assert!(judge_body(body.as_bytes()).is_some(), "{body}");
    }
    for body in [
        "",
        "Action=GetCallerIdentity&Version=2011-06-15",
        "Action=ListAccessKeys",
        "Comment=AssumeRole",
        "Policy=Action%3DAssumeRole",
    ] {
        assert_eq!(judge_body(body.as_bytes()), None, "{body}");
    }
    assert_eq!(judge_body(b"\xff\xfe"), None);
}

#[test]
fn ordinary_calls_are_harmless() {
    let target = |value: &'static [u8]| [("x-amz-target", value)];
    for found in [
        verdict("dynamodb", "x", "/", &target(b"DynamoDB_20120810.PutItem")),
        verdict(
            "codebuild",
            "x",
            "/",
            &target(b"CodeBuild_20161006.CreateBuild"),
        ),
        verdict("s3", "b.s3.amazonaws.com", "/AssumeRole", &[]),
        verdict("s3", "b.s3.amazonaws.com", "/v1/token", &[]),
        verdict("lambda", "x", "/2015-03-31/functions/", &[]),
        verdict("codeartifact", "x", "/v1/authorization-token/more", &[]),
        verdict("", "example.com", "/", &[]),
    ] {
        assert_eq!(found, Verdict::Harmless);
    }
}
