"""Make CloudTrail log files, the same for the same seed.

`python generate.py OUT --days 3` writes `<YYYY>/<MM>/<DD>/<name>.json.gz`, each `{"Records": […]}`, for three days. The same with `--late`
writes the second delivery: the next day, late files of the earlier days, and files that were there before under another name.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
ACCOUNTS = ["111122223333", "444455556666"]
REGIONS = ["us-east-1"] * 5 + ["eu-central-1"] * 3 + ["ap-south-1"]
USERS = ["ann", "bo", "zoë", "li.na", "build-bot", "backup"]
ROLES = ["Deployer", "ReadOnly", "DataLoader", "OrgAudit"]
AGENTS = ["aws-cli/2.15.30 Python/3.11.8", "Boto3/1.34.69", "console.amazonaws.com", 'Terraform/1.7.5 (+"https://www.terraform.io")']
REPEATED, REJECTED, DELAY_MINUTES = 0.02, 0.003, 15

Json = dict[str, Any]
Shape = Callable[[random.Random], Json | None]


def nothing(rng: random.Random) -> None:
    return None


def token(rng: random.Random, prefix: str, digits: int = 17) -> str:
    return f"{prefix}{rng.getrandbits(4 * digits):0{digits}x}"


def instances(rng: random.Random) -> Json:
    return {"instancesSet": {"items": [{"instanceId": token(rng, "i-")} for _ in range(rng.randrange(1, 4))]}}


def bucket(rng: random.Random) -> Json:
    return {"bucketName": f"data-{rng.randrange(20)}", "Host": "s3.amazonaws.com"}


def policy(rng: random.Random) -> Json:
    statement = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": f"arn:aws:s3:::data-{rng.randrange(20)}/*"}
    return {"policyDocument": json.dumps({"Version": "2012-10-17", "Statement": [statement]}), "policyName": "inline"}


def user(rng: random.Random) -> Json:
    return {"userName": rng.choice(USERS)}


def role_arn(rng: random.Random) -> str:
    return f"arn:aws:iam::{rng.choice(ACCOUNTS)}:role/{rng.choice(ROLES)}"


def credentials(rng: random.Random) -> Json:
    return {"credentials": {"accessKeyId": token(rng, "ASIA", 16).upper(), "expiration": "Mar 1, 2026, 1:00:00 PM"}}


def ingress(rng: random.Random) -> Json:
    ranges = {"items": [{"cidrIp": "0.0.0.0/0", "description": "größer als nötig"}]}
    rule = {"ipProtocol": "tcp", "fromPort": rng.choice([22, 443]), "toPort": 443, "ipRanges": ranges, "ipv6Ranges": {}}
    return {"groupId": token(rng, "sg-"), "ipPermissions": {"items": [rule]}}


@dataclass(frozen=True)
class Kind:
    """One kind of call: how often it is seen, and the shapes of what it says."""

    weight: int
    source: str
    name: str
    read_only: bool
    request: Shape = nothing
    response: Shape = nothing
    errors: tuple[str, ...] = ()


S3_ERRORS = ("AccessDenied", "NoSuchBucketPolicy")
IAM_ERRORS = ("AccessDeniedException", "NoSuchEntityException")
EC2_ERRORS = ("Client.UnauthorizedOperation", "Client.InvalidParameterValue")
KINDS = [
    Kind(200, "ec2", "DescribeInstances", True, instances, errors=(*EC2_ERRORS, "ThrottlingException")),
    Kind(120, "sts", "AssumeRole", True, lambda rng: {"roleArn": role_arn(rng), "durationSeconds": 3600}, credentials),
    Kind(120, "s3", "GetBucketAcl", True, lambda rng: {**bucket(rng), "acl": ""}, errors=S3_ERRORS),
    Kind(100, "s3", "GetBucketPolicy", True, bucket, errors=S3_ERRORS),
    Kind(
        80,
        "kms",
        "Decrypt",
        True,
        lambda rng: {"encryptionContext": {"table": "t", "part": str(rng.randrange(9))}},
        errors=("AccessDenied",),
    ),
    Kind(60, "ssm", "UpdateInstanceInformation", False, lambda rng: {"instanceId": token(rng, "i-"), "agentStatus": "Active"}),
    Kind(40, "logs", "CreateLogStream", False, lambda rng: {"logStreamName": token(rng, "s/"), "limits": [1, 2.5, None, True]}),
    Kind(30, "iam", "ListUsers", True, lambda rng: {"maxItems": rng.randrange(100)}, errors=IAM_ERRORS),
    Kind(
        20, "ec2", "RunInstances", False, lambda rng: {"instanceType": "m5.large", "monitoring": {"enabled": False}}, instances, EC2_ERRORS
    ),
    Kind(20, "secretsmanager", "GetSecretValue", True, lambda rng: {"secretId": f"app/{rng.randrange(9)}"}, errors=("AccessDenied",)),
    Kind(20, "rds", "DescribeDBInstances", True, lambda rng: {}),
    Kind(10, "signin", "ConsoleLogin", False, nothing, lambda rng: {"ConsoleLogin": rng.choice(["Success", "Success", "Failure"])}),
    Kind(6, "ec2", "AuthorizeSecurityGroupIngress", False, ingress, lambda rng: {"_return": True}, EC2_ERRORS),
    Kind(5, "s3", "PutBucketPolicy", False, lambda rng: {**bucket(rng), **policy(rng)}, errors=S3_ERRORS),
    Kind(4, "s3", "DeleteBucketPolicy", False, bucket, errors=S3_ERRORS),
    Kind(4, "iam", "CreateUser", False, user, lambda rng: {"user": {**user(rng), "path": "/"}}, IAM_ERRORS),
    Kind(4, "iam", "CreateAccessKey", False, user, lambda rng: {"accessKey": {"status": "Active", **user(rng)}}, IAM_ERRORS),
    Kind(3, "iam", "AttachUserPolicy", False, lambda rng: {**user(rng), "policyArn": "arn:aws:iam::aws:policy/Admin"}, errors=IAM_ERRORS),
    Kind(3, "iam", "PutRolePolicy", False, policy, errors=IAM_ERRORS),
    Kind(2, "iam", "UpdateLoginProfile", False, user, errors=IAM_ERRORS),
    Kind(2, "iam", "DeactivateMFADevice", False, user, errors=IAM_ERRORS),
    Kind(2, "iam", "DeleteUser", False, user, errors=IAM_ERRORS),
    Kind(1, "cloudtrail", "StopLogging", False, lambda rng: {"name": "trail"}, errors=("AccessDenied",)),
    Kind(1, "cloudtrail", "DeleteTrail", False, lambda rng: {"name": "trail"}, errors=("TrailNotFoundException",)),
]
WEIGHTS = [kind.weight for kind in KINDS]


def identity(rng: random.Random, account: str) -> Json | None:
    """Who calls: mostly users and roles; now and then the root user, a service, another account, or nobody."""
    name, role, chance = rng.choice(USERS), rng.choice(ROLES), rng.random()
    if chance < 0.55:
        return {"type": "IAMUser", "arn": f"arn:aws:iam::{account}:user/{name}", "accountId": account, "userName": name}
    if chance < 0.90:
        issuer = {"type": "Role", "arn": f"arn:aws:iam::{account}:role/{role}", "accountId": account, "userName": role}
        context = {"sessionIssuer": issuer if chance < 0.88 else {"type": "Role"}, "attributes": {"mfaAuthenticated": "false"}}
        arn = f"arn:aws:sts::{account}:assumed-role/{role}/{name}"
        return {"type": "AssumedRole", "arn": arn, "accountId": account, "sessionContext": context}
    if chance < 0.92:
        return {"type": "Root", "arn": f"arn:aws:iam::{account}:root", "accountId": account, "userName": None}
    if chance < 0.97:
        return {"type": "AWSService", "invokedBy": "ec2.amazonaws.com"}
    return {"type": "AWSAccount", "accountId": "999900001111"} if chance < 0.99 else None


def record(rng: random.Random, at: datetime) -> Json:
    """One record as CloudTrail writes it."""
    [kind] = rng.choices(KINDS, WEIGHTS)
    account = rng.choice(ACCOUNTS)
    failed = kind.errors and rng.random() < 0.1
    made: Json = {
        "eventVersion": "1.09",
        "userIdentity": identity(rng, account),
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": f"{kind.source}.amazonaws.com",
        "eventName": kind.name,
        "awsRegion": "us-east-1" if kind.source == "iam" else rng.choice(REGIONS),
        "sourceIPAddress": rng.choice(["10.0.1.", "10.0.2.", "203.0.113."]) + str(rng.randrange(1, 255)),
        "userAgent": rng.choice(AGENTS),
        "requestParameters": kind.request(rng),
        "responseElements": None if failed else kind.response(rng),
        "requestID": token(rng, "", 32),
        "eventID": f"{token(rng, '', 8)}-{token(rng, '', 4)}-4{token(rng, '', 3)}-a{token(rng, '', 3)}-{token(rng, '', 12)}",
        "readOnly": kind.read_only,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": account,
    }
    if failed:
        made |= {"errorCode": rng.choice(kind.errors), "errorMessage": f'User is not authorized to perform: "{kind.source}:{kind.name}"'}
    if made["userIdentity"] is None and rng.random() < 0.5:
        del made["userIdentity"]
    if kind.source == "signin":
        del made["readOnly"]
    return made


def rejected(rng: random.Random, of: Json) -> Json:
    """The record without what makes it an event."""
    name, text = rng.choice([("eventID", ""), ("eventTime", "yesterday")])
    others = {key: value for key, value in of.items() if key != name}
    return others | rng.choice([{}, {name: None}, {name: text}])


@lru_cache(maxsize=4)
def own_records(seed: int, day: int, number: int, of: int, count: int) -> list[Json]:
    """The records that the file with this number, of so many in the day, brings for the first time; late files have higher numbers."""
    rng = random.Random(f"{seed} {day} {number}")
    written = START + timedelta(days=day, seconds=86_400 * (number % of) // of)
    return [record(rng, written - timedelta(seconds=rng.randrange(60 * DELAY_MINUTES))) for _ in range(count)]


def file(seed: int, day: int, number: int, of: int, count: int) -> tuple[str, bytes]:
    """A file of a day: `count` records of its own, some of the file before it, and now and then a record that is not an event."""
    rng = random.Random(f"{seed} repeats {day} {number}")
    own = own_records(seed, day, number, of, count)
    before = own_records(seed, day, (number - 1) % of, of, count) if number else []
    again = [made for made in before if rng.random() < REPEATED]
    broken = [rejected(rng, made) for made in own if rng.random() < REJECTED]
    return name_of(seed, day, number, of), packed([*again, *own, *broken])


def name_of(seed: int, day: int, number: int, of: int, again: str = "") -> str:
    at = START + timedelta(days=day, seconds=86_400 * (number % of) // of)
    unique = token(random.Random(f"{seed} name {day} {number}{again}"), "", 12)
    return at.strftime(f"%Y/%m/%d/{ACCOUNTS[0]}_CloudTrail_us-east-1_%Y%m%dT%H%MZ_{unique}.json.gz")


def packed(records: list[Json]) -> bytes:
    return gzip.compress(json.dumps({"Records": records}, separators=(",", ":"), ensure_ascii=False).encode(), mtime=0)


def files(days: int, files_per_day: int, records_per_file: int, seed: int, *, late: bool = False) -> Iterator[tuple[str, bytes]]:
    """(relative path, content) of every file, by day; with `late` those of the second delivery."""

    def made(day: int, number: int) -> tuple[str, bytes]:
        return file(seed, day, number, files_per_day, records_per_file)

    for day in range(days, days + 1) if late else range(days):
        for number in range(files_per_day):
            yield made(day, number)
    if late:
        for day in range(days):
            yield made(day, files_per_day + (files_per_day // 2 + day) % files_per_day)
            if day % 2 == 0:
                yield name_of(seed, day, 0, files_per_day, again=" again"), made(day, 0)[1]
        yield name_of(seed, days, 0, files_per_day, again=" empty"), packed([])


def write(path: Path, content: bytes) -> None:
    """Write the file at once: readers see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.part")
    hidden.write_bytes(content)
    os.replace(hidden, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="landing folder")
    parser.add_argument("--days", type=int, default=3, help="days of the first delivery, from 2026-03-01 (default 3)")
    parser.add_argument("--files-per-day", type=int, default=24)
    parser.add_argument("--records-per-file", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", action="store_true", help="the second delivery instead of the first")
    given = parser.parse_args()
    count = size = 0
    for name, content in files(given.days, given.files_per_day, given.records_per_file, given.seed, late=given.late):
        write(given.out / name, content)
        count, size = count + 1, size + len(content)
    print(f"{count} files with {size / 1e6:.1f} MB in {given.out}")


if __name__ == "__main__":
    main()
