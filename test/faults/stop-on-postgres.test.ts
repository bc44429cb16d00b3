import { describe } from 'vitest';
import { describeStops } from './stops.ts';

describe('stopped under load, queues on postgres', () => describeStops('postgres'));
