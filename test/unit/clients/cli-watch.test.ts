import { describe, expect, it } from 'vitest';
import { coloursOf } from '../../../cli/output.ts';
import { widthOf } from '../../../cli/table.ts';
import { WatchBoard } from '../../../clients/cli/src/watch/board.ts';
import { lineOf } from '../../../clients/cli/src/watch/line.ts';
import { Screen } from '../../../clients/cli/src/watch/screen.ts';
import type { StreamItem } from '../../../clients/typescript/src/index.ts';
import { cliIo } from '../../support/cli-io.ts';

type Message = StreamItem<string>;
const AT = '2026-01-02T03:04:05.678Z';
const common = { seq: 1, at: AT, venue: 'kalshi', cursor: 'c' };
const plain = coloursOf(false, {});
const size = { columns: 120, rows: 24 };

const heartbeat = (healthy = true): Message => ({
  type: 'heartbeat',
  ...common,
  data: { checked_at: AT, interval_seconds: 15, venues: [{ venue: 'kalshi', healthy }] },
});
const price = (value: string): Message => ({
  type: 'price',
  ...common,
  market_id: 'm',
  outcome_id: 'm-yes',
  data: { market_id: 'm', outcome_id: 'm-yes', as_of: 1, price: value, best_bid: '0.40', best_ask: '0.44' },
});

function aBoard(): WatchBoard {
  const outcomes: [{ outcome_id: string; label: string }] = [{ outcome_id: 'm-yes', label: 'Yes' }];
  return new WatchBoard([{ venue: 'kalshi', market_id: 'm', title: 'Rain\x1b?', outcomes }]);
}

describe('WatchBoard', () => {
  it('shows prices with their change since the start, and the last trade', () => {
    const board = aBoard();
    for (const message of [price('0.42'), price('0.45')]) board.apply(message, 0);
    const trade = {
      trade_id: 't',
      market_id: 'm',
      outcome_id: 'm-yes',
      timestamp: 1,
      price: '0.45',
      size: '3',
      side: 'buy',
    } as const;
    board.apply({ type: 'trade', ...common, market_id: 'm', outcome_id: 'm-yes', data: trade }, 0);
    const [, head, row] = board.text(plain, size, 0).split('\n');
    expect(head).toMatch(/^VENUE +EVENT +OUTCOME +PRICE +CHANGE +BID +ASK +LAST TRADE$/);
    expect(row).toMatch(/^kalshi +Rain\ufffd\? +Yes +0\.45 +\+0\.030 +0\.40 +0\.44 +buy 3 @ 0\.45$/);
  });

  it('shows the exact change', () => {
    const board = aBoard();
    for (const message of [price('0.1'), price('0.1145')]) board.apply(message, 0);
    expect(board.text(plain, size, 0)).toContain(' +0.015 ');
    board.apply(price('0.1000000001'), 0);
    expect(board.text(plain, size, 0)).toContain(' +0.000 ');
  });

  it('begins with a snapshot, and learns a new title', () => {
    const board = aBoard();
    const outcomes = [{ outcome_id: 'm-yes', price: '0.1' }];
    board.apply({ type: 'snapshot', ...common, market_id: 'm', data: { market_id: 'm', as_of: 1, outcomes } }, 0);
    expect(board.quote('m-yes')).toMatchObject({ price: '0.1', first: '0.1' });
    const event = { title: 'Snow?', event_title: 'Which weather?', sibling_label: 'Snow' };
    const data = { venue: 'kalshi', market_id: 'm', ...event, outcomes: [{ outcome_id: 'm-yes', label: 'Ja' }] };
    board.apply({ type: 'market', ...common, market_id: 'm', data } as Message, 0);
    expect(board.quote('m-yes')).toMatchObject({ question: 'Which weather?: Snow', label: 'Ja', price: '0.1' });
  });

  it('states whether the table is complete', () => {
    const board = aBoard();
    expect(board.statusText()).toBe('CONNECTING');
    board.apply(heartbeat(), 0);
    expect(board.statusText()).toBe('LIVE, complete up to 03:04:05 UTC');
    board.apply(heartbeat(false), 0);
    expect(board.statusText()).toBe('LIVE, but no answer from kalshi; complete up to 03:04:05 UTC');
    board.apply({ type: 'stale', ...common, data: { reason: 'publisher_gone' } } as Message, 0);
    expect(board.statusText()).toBe('STALE (publisher_gone); complete up to 03:04:05 UTC');
    board.apply({ type: 'silent', data: { reason: 'no_heartbeat', checked_at: AT } }, 0);
    expect(board.statusText()).toBe('SILENT (no_heartbeat), connecting again; complete up to 03:04:05 UTC');
    board.apply({ type: 'gap', ...common, data: { reason: 'expired', from: 2, to: 9 } } as Message, 0);
    board.apply(heartbeat(), 0);
    expect(board.statusText()).toBe('LIVE, complete up to 03:04:05 UTC; 1 gap, the last one: expired');
  });

  it('fits the terminal', () => {
    const outcomes = Array.from({ length: 50 }, (_, at) => ({ outcome_id: `o${at}`, label: `Outcome ${at}` }));
    const board = new WatchBoard([{ venue: 'kalshi', market_id: 'm', title: '雪'.repeat(300), outcomes }]);
    for (const columns of [60, 80, 130]) {
      const lines = board.text(plain, { columns, rows: 12 }, 0).split('\n');
      expect(lines.length).toBe(12);
      expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns);
    }
  });

  it.each([
    [130, 'VENUE EVENT OUTCOME PRICE CHANGE BID ASK LAST TRADE'],
    [90, 'VENUE EVENT OUTCOME PRICE CHANGE BID ASK'],
    [70, 'VENUE EVENT OUTCOME PRICE CHANGE'],
  ])('shows the columns that leave the event readable in %i columns', (columns, head) => {
    const [, shown = ''] = aBoard().text(plain, { columns, rows: 12 }, 0).split('\n');
    expect(shown.replaceAll(/ +/g, ' ')).toBe(head);
  });
});

describe('lineOf', () => {
  it('names the outcome of a change, and states gaps', () => {
    const board = aBoard();
    expect(lineOf(price('0.42'), board, plain)).toBe(
      '03:04:05.678  price   kalshi  Rain\ufffd? · Yes  0.42  0.40 / 0.44\n',
    );
    const gap = { type: 'gap', ...common, data: { reason: 'expired', from: 2, to: 9 } } as Message;
    expect(lineOf(gap, board, plain)).toBe('03:04:05.678  GAP     expired: changes 2 to 9 are missing\n');
  });

  it('prints no control character of a title or an id', () => {
    const data = { venue: 'kalshi', market_id: 'm', title: 'Rain\x1b[2J?', status: 'closed', outcomes: [] };
    const market = { type: 'market', ...common, market_id: 'm', data } as unknown as Message;
    expect(lineOf(market, aBoard(), plain)).toBe('03:04:05.678  market  kalshi  Rain\ufffd[2J?  closed\n');
    const unknown = { ...price('0.42'), outcome_id: 'o\x1b[2J' } as Message;
    expect(lineOf(unknown, aBoard(), plain)).toContain('  o\ufffd[2J  0.42');
  });
});

describe('Screen', () => {
  it('draws over its last text, and shows the cursor again at its end', async () => {
    const io = cliIo({ isTerminal: true });
    const texts = ['one\ntwo\n', 'three\n'];
    const screen = new Screen(io.stdout, () => texts.shift() ?? '');
    await screen.draw();
    await screen.draw();
    await screen.end();
    // Without wrapping: a line with letters of two columns would take two rows, and the next drawing would begin too low.
    const [begin, end] = ['\x1b[?25l\x1b[?7l', '\x1b[?7h\x1b[?25h'];
    expect(io.written.stdout).toBe(`${begin}one\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[2A\rthree\x1b[K\n\x1b[J${end}`);
  });
});
