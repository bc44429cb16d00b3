import type { Market } from '../../typescript/src/index.ts';

type Titles = Pick<Market<string>, 'title' | 'sibling_label' | 'event_title'>;

/** Markets of one event often share a title; the label distinguishes them. */
export function titleOf({ title, sibling_label: label }: Pick<Titles, 'title' | 'sibling_label'>): string {
  return label === undefined || title.includes(label) ? title : `${title} (${label})`;
}

/** The event and the market in it; the title of a market that is its event. */
export function questionOf({ title, sibling_label: label, event_title: event }: Titles): string {
  if (event === undefined || event === title)
    return titleOf({ title, ...(label !== undefined && { sibling_label: label }) });
  return `${event}: ${label ?? title}`;
}
