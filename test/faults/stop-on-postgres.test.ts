import { describe } from 'vitest';
import { describeStops } from './campaign/stops.ts';

describe('processes stopped under load, queues on postgres', () => describeStops('postgres'));
