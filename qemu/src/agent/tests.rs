use super::*;

#[test]
fn the_end_of_a_job_carries_its_exit_code() {
    assert_eq!(parse_end("7 0 12.34", 7).unwrap(), 0);
    assert_eq!(parse_end("8 143 12.34", 8).unwrap(), 143);
}

#[test]
fn another_jobs_end_is_refused() {
    let error = parse_end("6 0 12.34", 7).unwrap_err().to_string();
    assert!(
        error.contains("expected the end of job 7, got that of job 6"),
        "{error}"
    );
    assert!(parse_end("7 0", 7).is_err());
    assert!(parse_end("7 x 1.0", 7).is_err());
}

#[test]
fn failures_show_the_end_of_the_output() {
    let reply = Reply {
        code: 2,
        text: "a\nb\n".to_owned(),
    };
    let error = reply.success("xl create").unwrap_err().to_string();
    assert_eq!(error, "xl create: exit code 2 in dom0: a\nb");
    assert_eq!(
        Reply {
            code: 0,
            text: "x".to_owned()
        }
        .success("x")
        .unwrap(),
        "x"
    );
}
