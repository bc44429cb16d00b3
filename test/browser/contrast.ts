import type { Page } from 'playwright-core';

/**
 * Finds texts in colours that are too similar to their background, by the limits of WCAG AA. It takes milliseconds, because it reads the
 * background from the ancestors only; axe also finds what lies over or under a text, and needs half a second.
 */
const FAULTS = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const colors = new Map();
  /** Red, green, blue in 0..255 and alpha in 0..1 of a colour of any notation. */
  const read = (text) => {
    if (!colors.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colors.set(text, [r, g, b, a / 255]);
    }
    return colors.get(text);
  };
  const mixed = (top, under, share) => [0, 1, 2].map((at) => top[at] * share + under[at] * (1 - share));
  const styles = new Map();
  const styleOf = (each) => styles.get(each) ?? (styles.set(each, getComputedStyle(each)), styles.get(each));
  const backdrops = new Map();
  /** What is painted behind the texts of an element; null behind an image, whose colours are unknown. */
  const backdropOf = (each) => {
    if (each === null) return [255, 255, 255];
    if (!backdrops.has(each)) {
      const { backgroundColor, backgroundImage } = styleOf(each);
      const under = backdropOf(each.parentElement);
      const color = read(backgroundColor);
      backdrops.set(each, under && backgroundImage === 'none' ? mixed(color, under, color[3]) : null);
    }
    return backdrops.get(each);
  };
  /** A colour of an element as the window shows it, under the opacities of its ancestors. */
  const shown = (color, of) => {
    let result = color;
    for (let each = of; each; each = each.parentElement) {
      const opacity = Number(styleOf(each).opacity);
      if (opacity < 1) result = mixed(result, backdropOf(each.parentElement) ?? result, opacity);
    }
    return result;
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const textOf = (each) => each.matches('input:not([type=checkbox], [type=radio], [type=hidden]), select, textarea')
    ? String(each.value)
    : [...each.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data.trim()).join(' ');
  const faults = [];
  for (const each of document.body.querySelectorAll('*:not(svg *, option, script, style, [hidden])')) {
    const text = textOf(each);
    // A single character or a symbol is a picture.
    if (text.length < 2 || !/[\\p{L}\\p{N}]/u.test(text)) continue;
    if (!each.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (each.closest(':disabled, [aria-disabled=true]') || each.closest('label')?.control?.disabled) continue;
    const backdrop = backdropOf(each);
    if (!backdrop) continue;
    const { color, fontSize, fontWeight } = styleOf(each);
    const ink = read(color);
    const [one, other] = [mixed(ink, backdrop, ink[3]), backdrop].map((part) => luminance(shown(part, each)));
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const isLarge = parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.66 && Number(fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) faults.push('contrast ' + contrast.toFixed(2) + ': ' + each.outerHTML.slice(0, 200));
  }
  return faults;
})()`;

/** Texts with too little contrast in the present colours, one line each. */
export function contrastFaults(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(FAULTS);
}
