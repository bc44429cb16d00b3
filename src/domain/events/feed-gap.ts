import { feedGapData } from '../webhooks/broadcast.ts';
import { counted, joined, numberOf, textOf, word } from '../webhooks/chat-values.ts';
import { eventBody } from '../webhooks/event-body.ts';
import { type EventDefinition, SAMPLE_FAILURE, SAMPLE_MARKET } from './definition.ts';

export const feedGap: EventDefinition = {
  summary: 'The feed of a venue may have lost messages',
  text(data) {
    const markets = word(data['markets']);
    const size = markets === '' ? '' : counted(markets, 'market');
    return {
      subject: word(data['venue']),
      facts: `${[word(data['cause']), size].filter(Boolean).join(', ')}, ${data['to'] === undefined ? 'lasts' : 'ended'}`,
    };
  },
  chat(data) {
    const markets = numberOf(data['markets']);
    return {
      title: `Feed of ${textOf(data['venue']) ?? 'a venue'}: ${textOf(data['to']) === undefined ? 'gap' : 'gap ended'}`,
      fields: [
        ['Cause', textOf(data['cause'])],
        ['Affected', joined(textOf(data['affected']), 'of', markets && counted(markets, 'market'))],
        ['From', textOf(data['from'])],
        ['To', textOf(data['to'])],
      ],
    };
  },
  sample: (stamp) =>
    eventBody(
      'feed_gap',
      stamp,
      feedGapData({
        venue: SAMPLE_MARKET.venue,
        gapId: '01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
        affected: 'books',
        cause: 'disconnected',
        from: SAMPLE_FAILURE,
        to: stamp.occurredAt,
        markets: 1,
        marketIds: [SAMPLE_MARKET.marketId],
      }),
    ),
};
