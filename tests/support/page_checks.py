"""Looks at a page in the browser: what lies outside, is cut, covered or too small for a finger.

Each check is a script that gives what it found, as text. Above it is `browser/test_every_page.py`.
"""

from __future__ import annotations

from playwright.async_api import Page

BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (one) => {
    for (let box = one.parentElement; box; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (/auto|scroll|hidden|clip/.test(style.overflowX) && box !== document.body) {
        const edges = box.getBoundingClientRect();
        if (edges.left >= -1 && edges.right <= width + 1) return true;
      }
    }
    return false;
  };
  return [...document.querySelectorAll('body *')].filter((one) => {
    if (one.closest('[data-part=skip], .texts-visually-hidden, svg *')) return false;
    if (!one.checkVisibility()) return false;
    const box = one.getBoundingClientRect();
    return box.width && (box.right > width + 1 || box.left < -1) && !scrolls(one);
  }).map((one) => one.outerHTML.slice(0, 120)).slice(0, 5);
}"""
"""Elements beyond the window that nothing scrolls to."""

SIDEWAYS = """() => [document.scrollingElement, ...document.querySelectorAll(
    '.layout-page, main, aside, .timeline-log, .inbox-inbox, .asks-card, [role=dialog]')]
  .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth + 1
    && getComputedStyle(box).display !== 'contents')
  .map((box) => `${box.tagName} ${box.className}: ${box.scrollWidth} > ${box.clientWidth}`)"""
"""Boxes of the layout that would scroll sideways: a table or a code block may, a page may not."""

UNDER = """() => [...document.querySelectorAll('.code-diff .code-row')].filter((row) => {
  const sign = row.querySelector('.code-sign');
  if (!sign || !row.checkVisibility()) return false;
  const text = document.createRange();
  text.setStartAfter(sign);
  text.setEndAfter(row.lastChild);
  const edge = sign.getBoundingClientRect().right - 1;
  return [...text.getClientRects()].some((line) => line.width && line.left < edge);
}).map((row) => row.outerHTML.slice(0, 120)).slice(0, 5)"""
"""Lines of a change that are wrapped to below their sign."""

CUT = """() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = (holder, words) => {
    // The whole text is in a title, or a screen reader gets it; a person who looks needs the title.
    for (let one = holder; one && one !== document.body; one = one.parentElement)
      if (one.title && one.title.replace(/\\s+/g, ' ').includes(words)) return true;
    return false;
  };
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const words = node.data.trim().replace(/\\s+/g, ' ');
    const parent = node.parentElement;
    if (!words || !parent.checkVisibility({visibilityProperty: true, opacityProperty: true}))
      continue;
    if (parent.closest('[data-part=skip], .texts-visually-hidden, svg, select, noscript, script'))
      continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((line) => line.width > 0);
    let [x, y] = [true, true];  // whether nothing below scrolls in this direction
    for (let box = parent; box && box !== document.body && (x || y); box = box.parentElement) {
      const style = getComputedStyle(box);
      if (style.display === 'inline' || style.display === 'contents') continue;
      const edge = box.getBoundingClientRect();
      const hides = (overflow) => overflow === 'hidden' || overflow === 'clip';
      const right = edge.left + box.clientLeft + box.clientWidth;
      const bottom = edge.top + box.clientTop + box.clientHeight;
      const over = x && hides(style.overflowX)
        && lines.some((line) => line.right > right + 1.5 || line.left < edge.left - 1.5);
      // A line counts as cut below when less than half of it is seen.
      const below = y && hides(style.overflowY)
        && lines.some((line) => (line.top + line.bottom) / 2 > bottom + 1);
      const folded = below && box.closest('.clamped-clamped');
      if ((over || below) && !folded && !told(parent, words)) {
        found.add(`${over ? 'right' : 'below'} "${words.slice(0, 60)}" in `
          + `${box.tagName}.${box.className}`);
        break;
      }
      if (over || below) break;  // cut there, and told
      if (/auto|scroll/.test(style.overflowX)) x = false;
      if (/auto|scroll/.test(style.overflowY)) y = false;
      if (style.position === 'fixed') break;
    }
  }
  return [...found].slice(0, 8);
}"""
"""Text that a box cuts off without a way to read it: neither scrolling nor a title with all of it,
nor a button that shows the rest (`Clamped`)."""

COVERED = """() => {
  const found = [];
  const controls = 'button, a[href], input, select, textarea, summary, [role=tab]';
  const root = document.querySelector('[role=dialog]') ?? document;
  for (const one of root.querySelectorAll(controls)) {
    if (one.closest('[data-part=skip], [aria-hidden=true]')) continue;
    if (!one.checkVisibility({visibilityProperty: true})) continue;
    one.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const box = one.getClientRects()[0];
    if (!box || !box.width) continue;
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (at && (one.contains(at) || one.closest('label')?.contains(at))) continue;
    const over = at ? at.outerHTML.slice(0, 80) : 'nothing';
    found.push(`${one.outerHTML.slice(0, 100)} is under ${over}`);
  }
  return found.slice(0, 5);
}"""
"""Controls that cannot be clicked: something lies over them, or they cannot be reached. While a
dialog is open, its own."""

SMALL = """() => {
  const found = [];
  const controls = `button, a[href], select, textarea, input, summary, [role=tab], [role=switch],
    [role=menuitem], [role=menuitemradio], [role=option], [role=checkbox], [role=radio]`;
  for (const one of document.querySelectorAll(controls)) {
    // A link within a sentence has the height of its line. A tap anywhere in a line of a diff shows
    // its buttons; the number is only the place where keys do the same.
    if ('lineNumber' in one.dataset) continue;
    if (one.closest('[data-part=skip], [aria-hidden=true]')) continue;
    if (one.tagName === 'A' && getComputedStyle(one).display === 'inline') continue;
    if (!one.checkVisibility({visibilityProperty: true})) continue;
    const own = one.getBoundingClientRect();
    const label = one.closest('label')?.getBoundingClientRect() ?? own;
    const [width, height] = [Math.max(own.width, label.width), Math.max(own.height, label.height)];
    if (!own.width && !label.width) continue;
    const field = /^(INPUT|SELECT|TEXTAREA)$/.test(one.tagName) && !/checkbox|radio/.test(one.type);
    const zooms = field && one.type !== 'file' && parseFloat(getComputedStyle(one).fontSize) < 16;
    if (height < 43.5 || width < 43.5 || zooms) {
      found.push(`${Math.round(width)}x${Math.round(height)} ${zooms ? 'zooms ' : ''}`
        + one.outerHTML.slice(0, 140));
    }
  }
  return [...new Set(found)].slice(0, 6);
}"""
"""Controls that a finger would miss, and fields into which a phone would zoom."""

LAYOUT = {"beyond": BEYOND, "sideways": SIDEWAYS, "under": UNDER, "cut": CUT, "covered": COVERED}
"""What must hold at every width. The last one scrolls."""


async def find(page: Page, scripts: dict[str, str]) -> dict[str, list[str]]:
    """What these checks find, without those that find nothing."""
    found = {name: await page.evaluate(script) for name, script in scripts.items()}
    return {name: told for name, told in found.items() if told}
