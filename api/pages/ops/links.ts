import type { SubjectLinks } from '../kit/event-subject.ts';
import { type Html, type HtmlValue, html } from '../kit/html.ts';
import { shortId } from '../kit/shown-values.ts';

/** The page of one market. */
export function marketPath(market: { venue: string; marketId: string }): string {
  return `/ops/markets/${encodeURIComponent(market.venue)}/${encodeURIComponent(market.marketId)}`;
}

/** Of the subject of an event. */
export const OPS_LINKS: SubjectLinks = {
  market: marketPath,
  webhook: (id) => `/ops/webhooks/${encodeURIComponent(id)}`,
};

const ID_PAGES: Readonly<Record<string, (id: string) => string>> = {
  wh: (id) => `/ops/webhooks/${id}`,
  dlv: (id) => `/ops/deliveries/${id}`,
  evt: (id) => `/ops/deliveries?event=${id}`,
  alert: (id) => `/ops/alerts?id=${id}`,
};
const ID = /\b((wh|dlv|evt|alert)_[0-9a-f][0-9a-f-]{7,63})\b/g;

/** A text whose ids are links to their pages. */
export function linkedIds(text: string): Html {
  const parts: HtmlValue[] = [];
  let end = 0;
  for (const match of text.matchAll(ID)) {
    const [id = '', , kind = ''] = match;
    const to = ID_PAGES[kind];
    if (to === undefined) continue;
    parts.push(text.slice(end, match.index), html`<a href="${to(id)}">${shortId(id)}</a>`);
    end = match.index + id.length;
  }
  return html`${parts}${text.slice(end)}`;
}
