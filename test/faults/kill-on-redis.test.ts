import { describe } from 'vitest';
import { describeKills } from './campaign/kills.ts';

describe('processes killed under load, queues on redis', () => describeKills('redis'));
