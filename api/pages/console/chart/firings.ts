import { type Html, html, NONE, table } from '../../kit/html.ts';
import { firesWhen } from '../alert-words.ts';
import type { Alert, Decimal, Firing, Market } from '../answers.ts';
import type { ConsoleRequest } from '../route.ts';
import { fromSeconds, minute, percent } from '../values.ts';

/** The newest alerts on the market. */
const MAX_ALERTS = 100;
/** Alerts that fire again name their firings in an answer of their own each. */
const MAX_REPEATED = 10;
const MAX_SHOWN = 100;

/** A firing of an alert within the range of a chart. */
interface ShownFiring {
  /** Epoch seconds. */
  time: number;
  /** Absent when the alert does not watch a price. */
  price?: Decimal;
  /** The page of the alert. */
  path: string;
  words: string;
}

export interface Firings {
  shown: ShownFiring[];
  /** Whether more alerts fired than were read. */
  isCut: boolean;
}

/** The firings of the account's alerts on an outcome since a time, newest first. None without the scope. */
export async function readFirings(
  { api, session }: Pick<ConsoleRequest, 'api' | 'session'>,
  { venue, market_id }: Market,
  outcome: string,
  since: number,
): Promise<Firings> {
  if (!session.caller.scopes.includes('alerts')) return { shown: [], isCut: false };
  const query = { venue, market_id, limit: MAX_ALERTS };
  const { data: alerts, meta } = await api<Alert[]>({ operationId: 'listAlerts', query });
  const fired = alerts.filter(({ triggeredAt }) => triggeredAt !== undefined && secondsOf(triggeredAt) >= since);
  const several = fired.filter(({ repeat, scope }) => repeat || scope !== undefined);
  const read = new Set(several.slice(0, MAX_REPEATED));
  const found = await Promise.all(
    fired.map(async (alert) => {
      const { data } = read.has(alert)
        ? await api<Alert>({ operationId: 'getAlert', params: { alert_id: alert.id } })
        : { data: alert };
      return firingsOf(data)
        .filter(({ tokenMint, marketId, at }) => {
          const isHere = tokenMint === undefined ? (marketId ?? market_id) === market_id : tokenMint === outcome;
          return isHere && secondsOf(at) >= since;
        })
        .map(
          ({ at, price }): ShownFiring => ({
            time: secondsOf(at),
            ...(price !== undefined && { price }),
            path: `/alerts/${alert.id}`,
            words: alert.name ?? firesWhen(alert, true),
          }),
        );
    }),
  );
  const shown = found.flat().sort((a, b) => b.time - a.time);
  const isCut = (meta.next_cursor ?? null) !== null || several.length > read.size || shown.length > MAX_SHOWN;
  return { shown: shown.slice(0, MAX_SHOWN), isCut };
}

/** Of an alert that was read alone, else its last firing. */
function firingsOf({
  firings,
  triggeredAt,
  triggeredPrice,
  tokenMint,
}: Alert): Pick<Firing, 'at' | 'price' | 'tokenMint' | 'marketId'>[] {
  if (firings !== undefined) return firings;
  if (triggeredAt === undefined) return [];
  return [
    {
      at: triggeredAt,
      ...(triggeredPrice !== undefined && { price: triggeredPrice }),
      ...(tokenMint !== undefined && { tokenMint }),
    },
  ];
}

const secondsOf = (iso: string) => Math.floor(Date.parse(iso) / 1_000);

/** The firings in words, for people without the picture. */
export function firingList({ shown, isCut }: Firings): Html {
  if (shown.length === 0) return html``;
  return html`<details class="more"><summary>${shown.length === 1 ? 'One firing' : `${shown.length} firings`} of your alerts in this range (squares)</summary>${table<ShownFiring>(
    {
      caption: 'Firings in this range, newest first',
      columns: [
        { label: 'Time (UTC)', cell: ({ time }) => minute(fromSeconds(time)) },
        { label: 'Alert', cell: ({ path, words }) => html`<a href="${path}">${words}</a>` },
        { label: 'Price', isNumeric: true, cell: ({ price }) => percent(price) ?? NONE },
      ],
      rows: shown,
      empty: '',
    },
  )}${isCut && html`<p class="muted">There are more firings; the pages of the alerts have them.</p>`}</details>`;
}
