// The metrics of the broker.
import type { Metric } from '../../http/module.ts'

export const BROKER_RESULTS = ['forwarded', 'refused', 'failed', 'test'] as const
export type BrokerResult = (typeof BROKER_RESULTS)[number]

export class BrokerMetrics {
  readonly #counts = new Map<string, number>(BROKER_RESULTS.map((result) => [result, 0]))

  count(result: BrokerResult): void {
    this.#counts.set(result, (this.#counts.get(result) ?? 0) + 1)
  }

  list(countConnections: () => number): Metric[] {
    return [
      {
        type: 'gauge',
        name: 'boxwood_broker_connections',
        help: 'Open connections of boxes to hosts of secrets.',
        collect: () => new Map([['', countConnections()]]),
      },
      {
        type: 'counter',
        name: 'boxwood_broker_requests_total',
        help: 'Requests of boxes to hosts of secrets: forwarded, refused before anything was sent, failed without a response, or the test of an agent.',
        label: 'result',
        collect: () => this.#counts,
      },
    ]
  }
}
