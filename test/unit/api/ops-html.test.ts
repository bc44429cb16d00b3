import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bars } from '../../../api/ops/bars.ts';
import { briefly } from '../../../api/ops/brief-cache.ts';
import { actionButton, actionForm } from '../../../api/ops/forms.ts';
import { ago, duration, html, pager, table } from '../../../api/ops/html.ts';
import { csrfTokenOf, roleOfPassword } from '../../../api/ops/operator.ts';

/** What a browser reads from escaped text. */
function readBack(text: string): string {
  return text.replace(/&#(\d+);/g, (_, codePoint: string) => String.fromCharCode(Number(codePoint)));
}

describe('html', () => {
  it('escapes every value so that it reads as it was and ends neither tag nor attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const markup = html`<a title="${text}">${text}</a>`.toString();
        const [, attribute = '', content = ''] = /^<a title="([^"<>]*)">([^<>]*)<\/a>$/s.exec(markup) ?? [];
        expect([readBack(attribute), readBack(content)]).toEqual([text, text]);
      }),
    );
  });

  it('escapes what follows an exclamation mark, as the template engine alone would not', () => {
    expect(html`<p>Careful!${'<b>'}</p>`.toString()).toBe('<p>Careful!&#60;b&#62;</p>');
    expect(html`!${['<b>']}${html`!${'<i>'}`}`.toString()).toBe('!&#60;b&#62;!&#60;i&#62;');
  });

  it('leaves markup of its own alone, and nothing as nothing', () => {
    const inner = html`<b>${'&'}</b>`;
    expect(html`${inner}${[inner, '<', 1, 2n, null, undefined, false]}`.toString()).toBe(
      '<b>&#38;</b><b>&#38;</b>&#60;12',
    );
  });

  it('does not take text for markup that only looks like it', () => {
    const forged = { toString: () => '<b>' } as unknown as string;
    expect(() => html`${forged}`.toString()).toThrow(TypeError);
  });
});

describe('parts', () => {
  it('say lengths of time in their largest unit', () => {
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

  it('give a table without rows as what that means', () => {
    const columns = [{ label: 'A', cell: (row: string) => row }];
    expect(table({ caption: 'c', columns, rows: [], empty: 'none <yet>' }).toString()).toBe(
      '<p class="empty">none &#60;yet&#62;</p>',
    );
    expect(table({ caption: 'c', columns, rows: ['<x>'], empty: '' }).toString()).toContain('&#60;x&#62;');
  });

  it('keep filters on the way through a list', () => {
    const links = (query: string, next?: string) =>
      [
        ...pager('/ops/x', new URLSearchParams(query), next)
          .toString()
          .matchAll(/href="([^"]*)"/g),
      ].map(([, href = '']) => readBack(href));
    expect(links('')).toEqual([]);
    expect(links('a=1', 'n"2')).toEqual(['/ops/x?a=1&cursor=n%222']);
    expect(links('a=1&cursor=n')).toEqual(['/ops/x?a=1']);
  });

  it('draw every known minute within the picture', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })), { minLength: 1 }), (values) => {
        const markup = bars(values, 'x').toString();
        const heights = [...markup.matchAll(/y="([\d.]+)" width="[-\d.]+" height="([\d.]+)"/g)];
        expect(heights.length).toBe(values.length + 1);
        for (const [, y, height] of heights) expect(Number(y) + Number(height)).toBeLessThanOrEqual(56.02);
        expect(markup).not.toMatch(/NaN|Infinity|e\+/);
      }),
    );
  });

  it('offer nothing to viewers', () => {
    const as = (role: 'viewer' | 'operator') => ({ operator: { role, sessionId: '', address: '' }, csrf: 'token' });
    const button = { action: '/ops/x', label: 'Do', confirm: 'Sure?' };
    expect(actionButton(as('viewer'), button).toString()).toBe('');
    expect(actionForm(as('viewer'), '/ops/x', 'fields').toString()).toBe('');
    expect(actionButton(as('operator'), button).toString()).toContain('name="csrf" value="token"');
  });
});

describe('passwords and tokens', () => {
  it('are those of one role or of none', () => {
    const passwords = { operator: 'one-password', viewer: 'another-one' };
    expect(
      ['one-password', 'another-one', 'one-passwor', '', 'undefined'].map((text) => roleOfPassword(passwords, text)),
    ).toEqual(['operator', 'viewer', null, null, null]);
    expect(roleOfPassword({ viewer: 'another-one' }, 'undefined')).toBeNull();
    expect(csrfTokenOf('a')).not.toBe(csrfTokenOf('b'));
  });
});

describe('briefly', () => {
  it('asks once in a while, whoever looks, and keeps no failure', async () => {
    let nowMs = 0;
    let asked = 0;
    let isBroken = false;
    const read = briefly(
      2_000,
      async () => {
        asked++;
        if (isBroken) throw new Error('broken');
        return asked;
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
