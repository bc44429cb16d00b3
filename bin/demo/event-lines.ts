import type { Colours } from '../../cli/output.ts';
import { cut, pad } from '../../cli/table.ts';
import { eventText } from '../../src/domain/events/events.ts';
import { printable } from '../../src/domain/values/text.ts';

/** A line of the receiver with `--json`. */
interface ReceivedEvent {
  readonly at: string;
  readonly type: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly attempt: string;
  readonly bodySignature: string;
  readonly standardSignature: string;
  readonly isDuplicate: boolean;
}

interface EventLinesOptions {
  /** The title of a market. @throws when the API does not answer */
  readonly titleOf: (venue: string, marketId: string) => Promise<string>;
  readonly say: (text: string) => void;
  readonly colours: Colours;
}

const TITLE_WIDTH = 56;
const LABEL_WIDTH = 16;
const FACTS_WIDTH = 34;
/** Beyond this number of titles the memory is cleared. */
const MAX_TITLES = 1_000;

/** Turns the events of the demo's receiver into lines: time, kind, market, facts and both verdicts, in the order of their arrival. */
export function createEventLines({ titleOf, say, colours }: EventLinesOptions) {
  const titles = new Map<string, Promise<string>>();
  let last: Promise<void> = Promise.resolve();

  function knownTitle(venue: string, marketId: string): Promise<string> {
    if (titles.size >= MAX_TITLES) titles.clear();
    const key = `${venue} ${marketId}`;
    const known = titles.get(key);
    if (known !== undefined) return known;
    // The id serves while the API does not answer; the next event asks again.
    const asked = titleOf(venue, marketId).catch(() => {
      titles.delete(key);
      return marketId;
    });
    titles.set(key, asked);
    return asked;
  }

  async function titleOfEvent({ title, venue, marketId }: ReceivedEvent['data']): Promise<string | undefined> {
    if (typeof title === 'string') return title;
    return typeof venue === 'string' && typeof marketId === 'string' ? knownTitle(venue, marketId) : undefined;
  }

  return {
    /** Whether the line was an event, which is printed when its title is known. */
    take(line: string): boolean {
      const event = eventOf(line);
      if (event === undefined) return false;
      const title = titleOfEvent(event.data);
      last = last.then(async () => say(eventLine(event, await title, colours)));
      return true;
    },
    /** Resolves when every event so far is printed. */
    printed: () => last,
  };
}

function eventOf(line: string): ReceivedEvent | undefined {
  if (!line.startsWith('{"event":')) return undefined;
  return (JSON.parse(line) as { event: ReceivedEvent }).event;
}

function eventLine(event: ReceivedEvent, title: string | undefined, { red, green, cyan, dim }: Colours): string {
  // The receiver does not know the secrets of webhooks of the user.
  const verdict = (name: string, value: string) => {
    if (value === 'unchecked') return dim(`${name} not checked`);
    return (value === 'ok' ? green : red)(`${name} ${value === 'ok' ? value : value.toUpperCase()}`);
  };
  const { subject: own, facts } = eventText(event.type, event.data);
  const outcome = event.data['tokenSymbol'];
  // A long title must not hide the outcome.
  const label = typeof outcome === 'string' ? ` · ${fitted(outcome, LABEL_WIDTH).trimEnd()}` : '';
  const subject = `${fitted(title ?? (own || event.id), TITLE_WIDTH - label.length).trimEnd()}${label}`;
  return [
    dim(event.at.slice(11, 23)),
    cyan(event.type.padEnd(14)),
    fitted(subject, TITLE_WIDTH),
    fitted(facts, FACTS_WIDTH),
    verdict('X-Webhook-Signature', event.bodySignature),
    verdict('webhook-signature', event.standardSignature),
    ...(event.attempt === '1' ? [] : [`attempt ${printable(event.attempt)}`]),
    ...(event.isDuplicate ? ['DUPLICATE'] : []),
  ].join('  ');
}

/** Foreign text must not control the terminal. */
function fitted(text: string, width: number): string {
  return pad(cut(printable(text), width), width);
}
