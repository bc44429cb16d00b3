import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barScale, bars } from '../../../api/pages/kit/drawings.ts';
import { actionButton, actionForm } from '../../../api/pages/kit/forms.ts';
import { ago, duration, html, table } from '../../../api/pages/kit/html.ts';
import { pager } from '../../../api/pages/kit/lists.ts';
import { csrfField, csrfTokenOf } from '../../../api/pages/kit/session.ts';
import { briefly } from '../../../src/domain/values/caches.ts';
import { showDirectionControls } from '../../../src/domain/values/text.ts';
import { anyCharacters } from '../../factories/texts.ts';

/** Unescapes text as a browser does. */
function readBack(text: string): string {
  return text.replace(/&#(\d+);/g, (_, codePoint: string) => String.fromCharCode(Number(codePoint)));
}

describe('html', () => {
  it('escapes every value so that it stays readable and cannot end a tag or attribute', () => {
    fc.assert(
      fc.property(anyCharacters(), (text) => {
        const markup = html`<a title="${text}">${text}</a>`.toString();
        const [, attribute = '', content = ''] = /^<a title="([^"<>]*)">([^<>]*)<\/a>$/s.exec(markup) ?? [];
        const shown = showDirectionControls(text);
        expect([readBack(attribute), readBack(content)]).toEqual([shown, shown]);
      }),
    );
  });

  it('shows characters that change the direction of text by their names, in text and attributes', () => {
    for (const code of [
      0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,
    ]) {
      const control = String.fromCharCode(code);
      const name = `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`;
      const markup = html`<a title="${`a${control}b`}">${[`c${control}`]}</a>`.toString();
      expect(markup).toBe(`<a title="a${name}b">c${name}</a>`);
    }
    expect(html`${'שלום ‍👩‍🚀 é'}`.toString()).toBe('שלום ‍👩‍🚀 é');
  });

  it('escapes a value after an exclamation mark, unlike the template engine alone', () => {
    expect(html`<p>Careful!${'<b>'}</p>`.toString()).toBe('<p>Careful!&#60;b&#62;</p>');
    expect(html`!${['<b>']}${html`!${'<i>'}`}`.toString()).toBe('!&#60;b&#62;!&#60;i&#62;');
  });

  it('keeps its own markup and prints nothing for null', () => {
    const inner = html`<b>${'&'}</b>`;
    expect(html`${inner}${[inner, '<', 1, 2n, null, undefined, false]}`.toString()).toBe(
      '<b>&#38;</b><b>&#38;</b>&#60;12',
    );
  });

  it('escapes text that looks like markup', () => {
    const forged = { toString: () => '<b>' } as unknown as string;
    expect(() => html`${forged}`.toString()).toThrow(TypeError);
  });
});

describe('page parts', () => {
  it('show durations in their largest unit', () => {
    expect([0, 999, 1_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 8_640_000_000].map(duration)).toEqual([
      '0 ms',
      '999 ms',
      '1 s',
      '59 s',
      '1 min',
      '59 min',
      '1 h',
      '1 d',
      '100 d',
    ]);
    const at = new Date(100_000);
    expect(
      [40_000, 99_500, 100_500, 220_000].map((nowMs) => readBack(ago(at, nowMs).toString()).replace(/<.*?>/g, '')),
    ).toEqual(['in 1 min', 'now', 'now', '2 min ago']);
  });

  it('show the empty text for a table without rows', () => {
    const columns = [{ label: 'A', cell: (row: string) => row }];
    expect(table({ caption: 'c', columns, rows: [], empty: 'none <yet>' }).toString()).toBe(
      '<p class="empty">none &#60;yet&#62;</p>',
    );
    expect(table({ caption: 'c', columns, rows: ['<x>'], empty: '' }).toString()).toContain('&#60;x&#62;');
  });

  it('keep the filters in page links', () => {
    const links = (query: string, next?: string) =>
      [
        ...pager({ path: '/ops/x', query: new URLSearchParams(query) }, next)
          .toString()
          .matchAll(/href="([^"]*)"/g),
      ].map(([, href = '']) => readBack(href));
    expect(links('')).toEqual([]);
    expect(links('a=1', 'n"2')).toEqual(['/ops/x?a=1&cursor=n%222']);
    expect(links('a=1&cursor=n')).toEqual(['/ops/x?a=1']);
  });

  it('draw every known minute inside the chart', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })), { minLength: 1 }), (values) => {
        const markup = bars(values, 'x').toString();
        const heights = [...markup.matchAll(/y="([\d.]+)" width="[-\d.]+" height="([\d.]+)"/g)];
        const cuts = values.filter((value) => value !== null && value > barScale(values));
        expect(heights.length).toBe(values.length + 1 + cuts.length);
        for (const [, y, height] of heights) expect(Number(y) + Number(height)).toBeLessThanOrEqual(56.02);
        expect(markup).not.toMatch(/NaN|Infinity|e\+/);
      }),
    );
  });

  it('show no actions to viewers', () => {
    const as = (role: 'viewer' | 'operator') => ({
      session: { mayAct: role === 'operator', hiddenFields: () => csrfField('token') },
    });
    const button = { action: '/ops/x', label: 'Do', confirm: 'Sure?' };
    expect(actionButton(as('viewer'), button).toString()).toBe('');
    expect(actionForm(as('viewer'), '/ops/x', 'fields').toString()).toBe('');
    expect(actionButton(as('operator'), button).toString()).toContain('name="csrf" value="token"');
  });
});

it('form tokens differ between sessions', () => {
  expect(csrfTokenOf('a')).not.toBe(csrfTokenOf('b'));
});

describe('briefly', () => {
  it('loads once per interval for all callers, and caches no failure', async () => {
    let nowMs = 0;
    let loads = 0;
    let isBroken = false;
    const read = briefly(
      2_000,
      async () => {
        loads++;
        if (isBroken) throw new Error('broken');
        return loads;
      },
      () => nowMs,
    );
    expect(await Promise.all([read(), read()])).toEqual([1, 1]);
    nowMs = 1_999;
    expect(await read()).toBe(1);
    nowMs = 2_000;
    isBroken = true;
    await expect(read()).rejects.toThrow('broken');
    isBroken = false;
    expect(await read()).toBe(3);
  });
});
