"""What strangers send to those who judge it: markup, handlers, bidi, joiners, bombs. MOD-14, MOD-15 and their kind."""

MARKUP = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
    "javascript:alert(1)",
    "<a hx-get=/admin/logout hx-trigger=load>go</a>",
    "{{7*7}}{% debug %}",
    "<svg/onload=alert(1)>",
    "<style>*{background:url(https://elsewhere.example/pixel)}</style>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<base href=https://elsewhere.example/><form action=/x><button>Decide</button></form>",
    "<meta http-equiv=refresh content='0;url=https://elsewhere.example/'>",
    "<img src=https://elsewhere.example/pixel.png><link rel=prefetch href=//elsewhere.example/>",
    "data:text/html,<script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;b&#x3e;",
    ']]><!--<b>--><noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "https://elsewhere.example/ https://еlsewhere.example/ http://127.0.0.1:1/",
]
SCRIPTS = [
    "safe \u202egnp.exe",
    "\u2067 opened and never closed",
    "ok\u200b",
    "e" + "\u0301" * 1000,
    "\u05e9\u05dc\u05d5\u05dd Latin \u05e2\u05d5\u05dc\u05dd 123",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\ufeff\u2060\u00ad\u180e\U000e0041\U000e0042 \u3164\u115f",
    "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f",
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f\u064c \u1019\u103c\u1014\u103a\u1019\u102c",
    "\u0007\u001b[31m\u0085\u2028\u2029\ue000",
]
ALL = [*MARKUP, *SCRIPTS]
#: One field as large as intake takes, in the ways that freeze a page.
LARGE = {
    "unbroken": "x" * 200_000,
    "hidden": "a\u200b" * 60_000,
    "marks": ("o" + "\u0335" * 30) * 3_000,
    "lines": "word \u05d0\u05d1\u05d2 word\n" * 9_000,
}
