// Metrics of the database.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { StoreObserver } from '../../../db/observed-driver.ts'

const BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5]

export function createStoreMetrics(registers: Registry[]): StoreObserver {
  const query = new Histogram({
    name: 'boxwood_store_query_duration_seconds',
    help: 'Duration of the database queries by operation.',
    labelNames: ['operation'],
    buckets: BUCKETS,
    registers,
  })
  const failures = new Counter({
    name: 'boxwood_store_query_failures_total',
    help: 'Database queries that failed.',
    labelNames: ['operation'],
    registers,
  })
  const wait = new Histogram({
    name: 'boxwood_store_connection_wait_seconds',
    help: 'How long queries and transactions waited for a free database connection.',
    buckets: BUCKETS,
    registers,
  })
  const transaction = new Histogram({
    name: 'boxwood_store_transaction_duration_seconds',
    help: 'Duration of the database transactions from begin to commit or rollback.',
    labelNames: ['outcome'],
    buckets: BUCKETS,
    registers,
  })
  const commit = new Histogram({
    name: 'boxwood_store_commit_duration_seconds',
    help: 'Duration of the commits, which wait for the disk.',
    buckets: BUCKETS,
    registers,
  })
  return {
    onQuery(operation, ms, failed) {
      query.observe({ operation }, ms / 1000)
      if (failed) failures.inc({ operation })
    },
    onAcquire: (ms) => wait.observe(ms / 1000),
    onTransaction(outcome, ms, endMs) {
      transaction.observe({ outcome }, ms / 1000)
      if (outcome === 'commit') commit.observe(endMs / 1000)
    },
  }
}
