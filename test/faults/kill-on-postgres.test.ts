import { describe } from 'vitest';
import { describeKills } from './campaign/kills.ts';

describe('killed under load, queues on postgres', () => describeKills('postgres'));
