// The board's one script: its only clock, its only memory of typed text, its keys. Pages work without it.
// No dependencies but htmx's events; nothing here builds HTML from text, so that a strict policy and strangers' words hold.
"use strict";
(() => {
  const body = document.body;
  const texts = readTexts(document.getElementById("texts"));
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

  // data-t-both becomes texts.both: the prefix keeps the sentences apart from what marks a page's parts.
  function readTexts(element) {
    return Object.fromEntries(Object.entries(element.dataset).map(([name, text]) => [name[1].toLowerCase() + name.slice(2), text]));
  }

  // --- The server's clock -------------------------------------------------------------------------------------------
  // Ages and countdowns are judged by the server's time; a browser's clock may be minutes off.
  let offset = Date.parse(body.dataset.now) - Date.now() || 0;
  const serverNow = () => Date.now() + offset;

  function lengthText(seconds) {
    const total = Math.max(0, Math.floor(seconds));
    const d = Math.floor(total / 86400), h = Math.floor(total / 3600) % 24, m = Math.floor(total / 60) % 60, s = total % 60;
    if (d) return fill(h ? texts.days : texts.wholeDays, { d, h });
    if (h) return fill(m ? texts.hours : texts.wholeHours, { h, m });
    if (m) return fill(s ? texts.minutes : texts.wholeMinutes, { m, s });
    return fill(texts.seconds, { s });
  }

  function relativeText(at) {
    const seconds = (serverNow() - at) / 1000, size = Math.abs(seconds);
    if (size < 5) return texts.now;
    // Seconds of an age of minutes would only flicker.
    const length = size >= 60 && size < 3600 ? fill(texts.wholeMinutes, { m: Math.floor(size / 60) }) : lengthText(size);
    return fill(seconds >= 0 ? texts.ago : texts.in, { length });
  }

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function showTimes() {
    for (const element of all("time[data-when]")) {
      if (element.dataset.when === "exact") continue;
      const relative = relativeText(Date.parse(element.dateTime));
      write(element, element.dataset.when === "both" ? fill(texts.both, { time: element.dataset.short, relative }) : relative);
    }
    all("time[data-countdown]").forEach(showCountdown);
  }

  function showCountdown(element) {
    const left = Math.ceil((Date.parse(element.dateTime) - serverNow()) / 1000);
    write(element, left > 0 ? fill(texts.left, { length: lengthText(left) }) : texts.over);
    if (left <= 0) element.closest("[data-gone-when-over]")?.remove();
    if ("quiet" in element.dataset) return;
    const level = left <= 0 ? "over" : left <= 20 ? "urgent" : left <= 60 ? "soon" : "";
    if (element.dataset.level === level) return;
    const before = element.dataset.level;
    element.dataset.level = level;
    for (const name of ["soon", "urgent", "over"]) element.classList.toggle(`is-${name}`, name === level);
    // A page opened late in the count warns once for the level it finds; an extended end starts anew.
    if (!level || (before === undefined && level === "over")) return;
    const label = element.dataset.countdown || texts.timeLeft;
    say(level === "over" ? fill(texts.overWarning, { label }) : fill(texts.warning, { label, s: level === "soon" ? 60 : 20 }));
    if (level === "over") element.dispatchEvent(new CustomEvent("countdown:over", { bubbles: true }));
  }

  // --- Lines that speak ---------------------------------------------------------------------------------------------
  const say = (text) => { find("[data-status-line]").textContent = text; };

  function alarm(marks) {
    const line = find("[data-alert-line]");
    line.textContent = marks.map((mark) => mark.dataset.alarm).join(" ");
    line.hidden = !marks.length;
    // A banner's own text is on the page already; a headline may have scrolled away.
    line.classList.toggle("visually-hidden", marks.every((mark) => mark.matches(".banner")));
  }

  function showMessage(text) {
    const line = find("[data-message-line]");
    find("[data-message-text]").textContent = text;
    line.hidden = !text;
    if (text) line.focus({ preventScroll: false });
  }

  find("[data-message-close]").addEventListener("click", () => showMessage(""));

  const headlines = (root) => new Map(all("[data-headline]", root).map((one) => [one.dataset.headline, one.dataset]));
  const alarmsOf = (marks) => marks.map((mark) => mark.dataset.alarm).join();
  const statesOf = (found) => new Map([...found].map(([key, data]) => [key, data.state]));
  let lastStates = statesOf(headlines(document));
  // What stands there when the page opens is read with the page; only what comes later is called out.
  let lastAlarms = alarmsOf(all("[data-alarm]"));

  function announceChanges() {
    const now = headlines(document), marks = all("[data-alarm]");
    const changed = [...now].filter(([key, data]) => lastStates.has(key) && lastStates.get(key) !== data.state);
    if (changed.length) say(changed.map(([, data]) => data.announce).join(". "));
    if (alarmsOf(marks) !== lastAlarms) alarm(marks);
    lastStates = statesOf(now);
    lastAlarms = alarmsOf(marks);
  }

  // --- The poll -----------------------------------------------------------------------------------------------------
  const MISSES_UNTIL_STALE = 3;
  const liveRoot = () => find("[data-live]");
  const poll = { timer: 0, misses: 0, isFlying: false, isPaused: false, isOver: false };

  const everySeconds = () => Math.max(1, Number(liveRoot()?.dataset.live) || 5);
  const mayPoll = () => liveRoot() && !document.hidden && !poll.isPaused && !poll.isOver;

  function schedule(seconds = everySeconds()) {
    clearTimeout(poll.timer);
    if (liveRoot() && !poll.isPaused && !poll.isOver) poll.timer = setTimeout(refresh, seconds * 1000);
  }

  function refresh() {
    // The next one is set at once: whatever becomes of this request, the clock goes on.
    schedule();
    if (!mayPoll()) return;
    if (poll.isFlying) return missed();
    poll.isFlying = true;
    window.htmx.trigger(liveRoot(), "refresh");
  }

  function missed() {
    poll.misses += 1;
    if (poll.misses >= MISSES_UNTIL_STALE) setStale(true);
  }

  function answered(xhr) {
    poll.misses = 0;
    const asOf = xhr.getResponseHeader("X-Live-As-Of");
    if (asOf) {
      offset = Date.parse(asOf) - Date.now();
      all("[data-live] time[data-as-of]").forEach((element) => moveAsOf(element, asOf));
    }
    setStale(false);
    find("[data-signed-out-banner]").hidden = true;
  }

  function moveAsOf(element, asOf) {
    const before = Date.parse(element.dateTime);
    const shown = /^(\d+):(\d+):(\d+)$/.exec(element.textContent);
    if (!shown || Date.parse(asOf) <= before) return;
    // The reader's zone is the server's choice: move its wall clock on by the difference, know no zones here.
    const wall = (Number(shown[1]) * 3600 + Number(shown[2]) * 60 + Number(shown[3]) + Math.round((Date.parse(asOf) - before) / 1000)) % 86400;
    element.textContent = [Math.floor(wall / 3600), Math.floor(wall / 60) % 60, wall % 60].map((n) => String(n).padStart(2, "0")).join(":");
    element.dateTime = asOf;
  }

  function setStale(isStale) {
    body.classList.toggle("is-stale", isStale);
    const banner = find("[data-stale-banner]");
    if (banner.hidden === !isStale && isStale === false) return;
    banner.hidden = !isStale;
    const asOf = find("[data-live] time[data-as-of]");
    find("[data-stale-text]").textContent = asOf ? fill(texts.stale, { time: asOf.textContent }) : texts.staleUnknown;
    all("[data-needs-fresh]").forEach((button) => holdBack(button, isStale));
  }

  function holdBack(button, isStale) {
    if (isStale && !button.disabled) {
      button.disabled = true;
      button.dataset.heldBack = button.title;
      button.title = texts.needsFresh;
    } else if (!isStale && "heldBack" in button.dataset) {
      button.disabled = false;
      button.title = button.dataset.heldBack;
      delete button.dataset.heldBack;
    }
  }

  const pause = find("[data-live-pause]");
  if (liveRoot()) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      poll.isPaused = !poll.isPaused;
      pause.setAttribute("aria-pressed", String(poll.isPaused));
      find("[data-live-pause-text]").textContent = poll.isPaused ? texts.paused : texts.live;
      poll.isPaused ? clearTimeout(poll.timer) : refresh();
    });
    schedule();
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { showTimes(); refresh(); } });
  window.addEventListener("online", refresh);
  setInterval(() => { if (!document.hidden) showTimes(); }, 1000);

  // --- htmx: what is sent, what is swapped --------------------------------------------------------------------------
  const cookie = (name) => document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
  // Remembered by request: once its root is swapped out, htmx reports the end of a poll from the root's parent.
  const polls = new WeakSet();
  const isPoll = (detail) => polls.has(detail.xhr);
  // Only our own answers to a poll name the version of what they show.
  const isOurs = (xhr) => [200, 204, 286].includes(xhr.status) && Boolean(xhr.getResponseHeader("X-Live-Version"));
  const versionTime = (version) => Number((version || "").split("-")[0]) || 0;

  body.addEventListener("htmx:configRequest", ({ detail }) => {
    // Signing in again in another tab changes the token: the cookie knows the one that counts.
    const token = cookie("csrftoken");
    if (token && detail.verb !== "get") {
      detail.headers["X-CSRFToken"] = token;
      if ("csrfmiddlewaretoken" in detail.parameters) detail.parameters.csrfmiddlewaretoken = token;
    }
    if (!detail.elt.matches("[data-live]")) return;
    detail.headers["X-Live-Poll"] = "1";
    detail.headers["X-Live-Version"] = detail.elt.dataset.version ?? "";
    if (detail.elt.dataset.order) detail.headers["X-Live-Order"] = detail.elt.dataset.order;
    detail.timeout = 10_000;
  });

  body.addEventListener("htmx:beforeSend", ({ detail }) => {
    if (detail.elt.matches("[data-live]")) polls.add(detail.xhr);
  });

  body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const root = detail.target?.closest?.("[data-live]");
    // An error, or a page that is not the polled part (a proxy's, a sign-in), never lands in a living page.
    if (isPoll(detail) && !(detail.xhr.status === 200 && isOurs(detail.xhr))) detail.shouldSwap = false;
    const version = detail.xhr.getResponseHeader("X-Live-Version");
    if (root && version && versionTime(version) < versionTime(root.dataset.version)) detail.shouldSwap = false;
  });

  body.addEventListener("htmx:afterRequest", ({ detail }) => {
    detail.elt.closest?.("form")?.classList.remove("is-sent");
    if (!isPoll(detail)) return;
    poll.isFlying = false;
    const code = detail.xhr.status;
    // Code 0 is a request that an act replaced (hx-sync), or that another event below speaks for.
    if (isOurs(detail.xhr)) answered(detail.xhr);
    else if (code !== 0 && code !== 401) missed();
    if (code === 286) { poll.isOver = true; pause.hidden = true; }
  });

  body.addEventListener("htmx:responseError", ({ detail }) => {
    const code = detail.xhr.status;
    if (code === 401) return signedOut();
    if (isPoll(detail)) return;
    showMessage(texts[`error${code}`] ?? (code >= 500 ? texts.error500 : fill(texts.errorOther, { code })));
  });
  body.addEventListener("htmx:sendError", ({ detail }) => isPoll(detail) ? missed() : showMessage(texts.errorNetwork));
  body.addEventListener("htmx:timeout", ({ detail }) => isPoll(detail) ? missed() : showMessage(texts.errorTimeout));

  body.addEventListener("htmx:afterSwap", ({ detail }) => {
    const root = detail.target;
    showTimes();
    announceChanges();
    restoreTyped();
    forgetConfirmed();
    showChosen();
    if (body.classList.contains("is-stale")) all("[data-needs-fresh]").forEach((button) => holdBack(button, true));
    if (!isPoll(detail)) {
      showMessage("");
      find("[data-focus]", root.isConnected ? root : document)?.focus();
    }
  });

  // --- Signed out, and typed text -----------------------------------------------------------------------------------
  // Text waits in this tab only, under its item and assignment, until the server has confirmed it.
  const KEPT = "kept:";

  function signedOut() {
    keepAll();
    find("[data-signed-out-banner]").hidden = false;
  }

  function store(key, value) {
    // A full or forbidden storage must not stop anybody from typing; the text is still in its field.
    try { value ? sessionStorage.setItem(KEPT + key, value) : sessionStorage.removeItem(KEPT + key); } catch { return; }
  }

  function stored(key) {
    try { return sessionStorage.getItem(KEPT + key); } catch { return null; }
  }

  function keepAll() {
    for (const field of all("[data-keep]")) {
      if (field.dataset.keep && !field.closest("[data-restricted]")) store(field.dataset.keep, field.value);
    }
  }

  function restoreTyped() {
    for (const field of all("[data-keep]:not([data-restored])")) {
      field.dataset.restored = "";
      // An own assignment before this one: what was typed then, and lost with it, is still its person's.
      const text = field.closest("[data-restricted]") ? null : stored(field.dataset.keep) ?? stored(field.dataset.keepBefore);
      if (text && !field.value) field.value = text;
    }
  }

  // Of the texts that belong to a list's choices only the chosen one's shows. Without this they all stand there.
  function showChosen() {
    for (const list of all("[data-texts-of]")) {
      const chosen = document.getElementById(list.dataset.textsOf)?.value;
      for (const text of all("[data-text-for]", list)) text.hidden = text.dataset.textFor !== chosen;
    }
  }

  // With the note go the reasons that were typed beside it, whose keys begin with its own.
  function forget(key) {
    store(key, "");
    try { Object.keys(sessionStorage).filter((one) => key && one.startsWith(`${KEPT}${key}-`)).forEach((one) => sessionStorage.removeItem(one)); } catch { return; }
  }

  function forgetConfirmed() {
    all("[data-kept-clear]").forEach((mark) => forget(mark.dataset.keptClear));
    if (find("[data-kept-clear-all]")) forgetAll();
  }

  function forgetAll() {
    try { Object.keys(sessionStorage).filter((key) => key.startsWith(KEPT)).forEach((key) => sessionStorage.removeItem(key)); } catch { return; }
  }

  let keepTimer = 0;
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-keep]")) return;
    clearTimeout(keepTimer);
    keepTimer = setTimeout(keepAll, 400);
  });
  body.addEventListener("kept-clear", ({ detail }) => forget(detail.key));
  window.addEventListener("pagehide", () => { if (!isLeaving) keepAll(); });
  let isLeaving = false;
  document.addEventListener("change", showChosen);
  forgetConfirmed();
  restoreTyped();
  showChosen();

  // --- Forms --------------------------------------------------------------------------------------------------------
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-sign-out]")) { isLeaving = true; forgetAll(); }
    if (form.getAttribute("method")?.toLowerCase() !== "post") return;
    const hidden = form.elements.csrfmiddlewaretoken;
    if (hidden && cookie("csrftoken")) hidden.value = cookie("csrftoken");
    if (form.matches("[data-many]")) return;
    if (form.classList.contains("is-sent")) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else form.classList.add("is-sent");
  }, true);
  window.addEventListener("pageshow", (event) => {
    isLeaving = false;
    all("form.is-sent").forEach((form) => form.classList.remove("is-sent"));
    // A page out of the browser's memory may show evidence that its reader may no longer see.
    if (event.persisted) (find(".evidence") ? location.reload() : refresh());
  });
  find("[data-focus]")?.focus();

  document.addEventListener("click", (event) => {
    for (const menu of all("details[data-menu][open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  // --- Keys ---------------------------------------------------------------------------------------------------------
  const mode = body.dataset.shortcuts;
  const SLEEP_MS = 500;
  let awakeAt = find("[data-key-sleep]") ? performance.now() + SLEEP_MS : 0;
  body.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target.matches?.("[data-key-sleep]") || find("[data-key-sleep]", detail.target)) awakeAt = performance.now() + SLEEP_MS;
  });

  const isTyping = (element) => element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=submit])");
  const isShown = (element) => element.checkVisibility?.() ?? element.offsetParent !== null;

  function pressed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey) return "ctrl+enter";
    if (event.ctrlKey || event.metaKey) return "";
    // With Alt some keyboards write other characters: the place of the key counts.
    if (mode === "alt") return event.altKey && /^Key[A-Z]$/.test(event.code) ? event.code.slice(3).toLowerCase() : "";
    return mode === "letters" && !event.altKey && event.key.length === 1 ? event.key.toLowerCase() : "";
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return closeOpen(event);
    if (event.repeat || event.isComposing || event.defaultPrevented) return;
    const typing = isTyping(event.target), key = pressed(event);
    if (event.key === "?" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); return showKeys(); }
    if (!key || mode === "off" || find("dialog[open]")) return;
    if (typing && key !== "ctrl+enter" && mode !== "alt") return;
    const element = meant(key, event.target);
    if (!element) return;
    event.preventDefault();
    if (performance.now() >= awakeAt) press(element);
  });

  // Who sends while typing the reason of a skip sends that, and decides nothing.
  function meant(key, target) {
    const element = all("[data-key]").find((one) => one.dataset.key === key && !one.disabled && isShown(one));
    const form = key === "ctrl+enter" && target.closest("form");
    return form && element && form !== element.form ? find("button", form) : element;
  }

  function press(element) {
    if (element.matches("summary")) {
      element.click();
      // What is opened by a key is typed into next; else the letters of a reason would be keys.
      if (element.parentElement.open) find("textarea, select, input:not([type=hidden])", element.parentElement)?.focus();
      return;
    }
    if (element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=submit])")) return element.focus();
    if (element.matches("input[type=radio]")) element.focus();
    element.click();
  }

  function closeOpen(event) {
    const open = event.target.closest("details.confirm[open], details[data-menu][open]") ?? find("details[data-menu][open]");
    if (!open) return;
    open.open = false;
    find("summary", open).focus();
  }

  const keyed = () => all("[data-key]").filter(isShown);
  const nameOf = (element) => element.dataset.keyLabel || element.ariaLabel || ownText(element.labels?.[0] ?? element);

  function ownText(element) {
    const copy = element.cloneNode(true);
    all("kbd, .optional", copy).forEach((hint) => hint.remove());
    return copy.textContent.trim();
  }

  function make(name, text, parent) {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    parent?.append(element);
    return element;
  }

  function showKeys() {
    find("dialog.keys")?.remove();
    const dialog = make("dialog", "", body);
    dialog.className = "keys";
    dialog.ariaLabel = texts.keysTitle;
    make("h2", texts.keysTitle, dialog);
    if (mode === "off") make("p", texts.keysNone, dialog);
    const list = make("dl", "", dialog);
    const rows = mode === "off" ? [] : keyed().map((one) => [one.dataset.key, nameOf(one)]);
    for (const [key, name] of [...rows, ["?", texts.keysHelp]]) {
      const shown = key.length === 1 && key !== "?" && mode === "alt" ? `Alt+${key}` : key;
      make("kbd", shown.replace("ctrl+enter", "Ctrl+Enter"), make("dt", "", list));
      make("dd", name, list);
    }
    const close = make("button", texts.close, dialog);
    close.className = "button";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
  }

  find("[data-keys-hint]").hidden = !keyed().length;
  showTimes();
})();
