"""The page of the audit."""

HOSTILE = "<script>alert(1)</script>"


def test_it_tells_filters_and_pages(here):
    here.job(name=HOSTILE)
    for _ in range(60):
        here.job()
    browser = here.browser("project_admin")

    first = browser.get("/audit").content.decode()
    older = browser.get("/audit", {"verb": "project."}).content.decode()
    empty = browser.get("/audit", {"actor": "nobody"}).content.decode()
    link = first.partition('class="pager"')[2].partition('href="')[2].partition('"')[0]
    second = browser.get("/audit" + link.replace("&amp;", "&")).content.decode()

    assert first.count("<details>") == 50
    assert "submitted a job" in first
    assert "made the project vision" in older
    assert "Nothing was found" in empty
    assert "&lt;script&gt;" in second
    assert HOSTILE not in second


def test_wrong_filters_are_told(here):
    browser = here.browser("tenant_admin")

    wrong = browser.get("/audit", {"since": "never"})
    nul = browser.get("/audit", {"actor": "a\0"})

    assert wrong.status_code == 422
    assert b"Enter a valid date" in wrong.content
    assert nul.status_code == 422


def test_others_learn_why_they_may_not(here):
    answer = here.browser("member").get("/audit")

    assert answer.status_code == 403
    assert b"project:admin" in answer.content
