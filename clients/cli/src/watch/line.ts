import type { Colours } from '../../../../cli/output.ts';
import { cut } from '../../../../cli/table.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { StreamItem } from '../../../typescript/src/index.ts';
import { questionOf } from '../rows.ts';
import type { WatchBoard } from './board.ts';

const QUESTION = 48;

/** A message as one line, for outputs that are not a terminal; empty for messages that change nothing to see. */
export function lineOf(message: StreamItem<string>, board: WatchBoard, colours: Colours): string {
  if (message.type === 'silent' || message.type === 'stale' || message.type === 'heartbeat')
    return `${board.statusText()}\n`;
  const time = message.at.slice(11, 23);
  switch (message.type) {
    case 'price':
      return `${time}  price   ${subject(message.outcome_id, board)}  ${message.data.price ?? '-'}  ${message.data.best_bid ?? '-'} / ${message.data.best_ask ?? '-'}\n`;
    case 'snapshot':
      return message.data.outcomes
        .map(({ outcome_id: id, price }) => `${time}  price   ${subject(id, board)}  ${price ?? '-'}\n`)
        .join('');
    case 'trade':
      return `${time}  trade   ${subject(message.data.outcome_id, board)}  ${message.data.side ?? ''} ${message.data.size} @ ${message.data.price}\n`;
    case 'market':
      return `${time}  market  ${message.data.venue}  ${printable(questionOf(message.data))}  ${message.data.status}\n`;
    case 'gap':
      return colours.yellow(`${time}  GAP     ${message.data.reason}${rangeOf(message.data)}\n`);
    case 'lagged':
      return `${time}  lagged  connecting again\n`;
    default:
      return '';
  }
}

function subject(outcomeId: string, board: WatchBoard): string {
  const quote = board.quote(outcomeId);
  return quote === undefined
    ? printable(outcomeId)
    : `${quote.venue}  ${cut(quote.question, QUESTION)} · ${quote.label}`;
}

function rangeOf({ from, to }: { from?: number; to?: number }): string {
  return from === undefined || to === undefined ? '' : `: changes ${from} to ${to} are missing`;
}
