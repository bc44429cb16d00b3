import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SseParser } from '../../../clients/typescript/src/sse.ts';

const event = fc.record({
  type: fc.constantFrom('price', 'heartbeat'),
  id: fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/),
  data: fc.json({ maxDepth: 2 }),
});

it('SseParser returns the same events for every division of the bytes', () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.boolean(),
      (events, cuts, crlf) => {
        const end = crlf ? '\r\n' : '\n';
        const text = events
          .map(({ type, id, data }) => [`event: ${type}`, `id: ${id}`, `data: ${data}`, '', ''].join(end))
          .join('');
        const bytes = new TextEncoder().encode(`retry: 1000${end}${end}: comment${end}${end}${text}`);
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        const parser = new SseParser();
        const parsed = [0, ...places].flatMap((from, i) =>
          parser.push(bytes.subarray(from, places[i] ?? bytes.length)),
        );
        expect(parsed).toEqual(events);
      },
    ),
  );
});
