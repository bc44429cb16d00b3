import { MARKET_STATUSES } from '../../../../src/domain/markets/market.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { VENUE } from '../read-arguments.ts';
import { WatchBoard } from '../watch/board.ts';
import { lineOf } from '../watch/line.ts';
import { Screen } from '../watch/screen.ts';
import { findMarkets } from './markets.ts';

/** The API takes this many ids in a stream. */
const MAX_MARKETS = 100;
const CHANNELS = ['prices', 'trades', 'markets'] as const;

export const watch: CliCommand = {
  summary: 'Shows the prices of markets live, and whether the table is complete.',
  forms: ['watch [WORDS…] [--venue VENUE] [--category NAME] [--limit N]', 'watch --market ID[,ID…]'],
  options: {
    market: {
      value: 'IDS',
      help: `a comma list of at most ${MAX_MARKETS} markets; by default the open markets with the highest volume`,
    },
    venue: VENUE,
    status: { value: 'STATUS', choices: MARKET_STATUSES, help: 'only markets in this state, by default open' },
    category: { value: 'NAME', help: "only this category, in the venue's spelling" },
    limit: { value: 'N', help: 'the number of markets, by default as many as the terminal shows' },
    json: { help: 'prints each message of the stream as one line of JSON' },
  },
  words: [0, 50],
  ids: { options: { market: 'market' } },
  notes: `The first line of the table states whether it is complete. On a terminal the table is redrawn in place; elsewhere each message is a
line. Ctrl-C ends it with exit code 0.`,
  async run(call) {
    const { io } = call;
    const listed = call.texts.get('market')?.split(',');
    const client = call.client();
    const rows = Math.max(3, Math.min(MAX_MARKETS, Math.floor((io.stdout.rows - 4) / 2)));
    const found =
      listed === undefined
        ? (await findMarkets(call, { limit: rows, status: 'open', sort: 'volume_24h' })).data
        : await Promise.all(
            listed.map(
              async (id) =>
                (await client.markets.get({ market_id: id, ...venueOf(call.texts) }, { signal: io.signal })).data,
            ),
          );
    if (found.length === 0) {
      await call.note('no market');
      return EXIT.notFound;
    }
    const marketIds = found.slice(0, MAX_MARKETS).map(({ market_id: id }) => id);
    const stream = client.stream(
      { channels: CHANNELS, market_ids: marketIds, snapshot: true, ...venueOf(call.texts) },
      { signal: io.signal },
    );
    const board = new WatchBoard(found);
    const isTable = io.stdout.isTerminal && !call.flags.has('json');
    const screen = isTable ? new Screen(io.stdout, () => board.text(call.colours, io.stdout, io.now())) : undefined;
    try {
      await screen?.draw();
      for await (const message of stream) {
        const before = board.stateKey;
        board.apply(message, io.now());
        if (screen !== undefined) screen.drawSoon();
        else if (call.flags.has('json')) await call.print(`${JSON.stringify(message)}\n`);
        else if (message.type !== 'heartbeat' || board.stateKey !== before) {
          await call.print(lineOf(message, board, call.colours));
        }
      }
    } catch (error) {
      if (!io.signal.aborted) throw error;
    } finally {
      await screen?.end();
    }
    const count = marketIds.length === 1 ? '1 market' : `${marketIds.length} markets`;
    if (io.signal.aborted)
      await call.note(`stopped watching ${count}; the same command begins with the present prices`);
    return EXIT.done;
  },
};

function venueOf(texts: ReadonlyMap<string, string>): { venue?: string } {
  const venue = texts.get('venue');
  return venue === undefined ? {} : { venue };
}
