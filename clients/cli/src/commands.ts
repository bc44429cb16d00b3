import type { Commands } from './command.ts';
import { alerts } from './commands/alerts.ts';
import { archive } from './commands/archive.ts';
import { book } from './commands/book.ts';
import { candles } from './commands/candles.ts';
import { completion } from './commands/completion.ts';
import { coverage } from './commands/coverage.ts';
import { deliveries } from './commands/deliveries.ts';
import { compare, executable } from './commands/executable.ts';
import { fees } from './commands/fees.ts';
import { keys } from './commands/keys.ts';
import { listen } from './commands/listen.ts';
import { market, markets } from './commands/markets.ts';
import { mcp } from './commands/mcp.ts';
import { prices } from './commands/prices.ts';
import { resolution, resolutions } from './commands/resolutions.ts';
import { rules } from './commands/rules.ts';
import { trades } from './commands/trades.ts';
import { watch } from './commands/watch.ts';
import { webhooks } from './commands/webhooks.ts';

/** Every command, in the order of the help. */
export const COMMANDS: Commands = {
  markets,
  market,
  prices,
  book,
  executable,
  fees,
  compare,
  trades,
  candles,
  resolution,
  resolutions,
  rules,
  archive,
  coverage,
  watch,
  alerts,
  webhooks,
  deliveries,
  keys,
  listen,
  mcp,
  completion,
};
