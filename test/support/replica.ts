// The coordinators of tests that run only a part of a coordinator.

import { EventEmitter } from 'node:events'
import type { Db } from '../../coordinator/db/open.ts'
import {
  type Replica,
  registerOnlyReplica,
  registerSharedReplica,
} from '../../coordinator/replicas/replica.ts'
import { renewReplica } from '../../coordinator/replicas/store.ts'

/** The host of coordinators and boxes in tests with one host. */
export const TEST_HOST = 'hst_test'

const SILENT = { warn() {}, error() {} }

/** A coordinator that is not in the database, for parts that compare no leases. */
export const createFakeReplica = (id = 'rep_test', host = TEST_HOST): Replica => ({
  id,
  isShared: false,
  host,
  isLeaseValid: true,
  fleet: null,
  events: new EventEmitter(),
  close: async () => undefined,
})

/** The coordinator of a start after kill -9: those before it have stopped. */
export const startOnlyReplica = (db: Db, host = TEST_HOST): Promise<Replica> => registerOnlyReplica(db, host)

/** One of several coordinators. Close it after the test. */
export const startSharedReplica = (db: Db, host = TEST_HOST): Promise<Replica> =>
  registerSharedReplica({ db, host, log: SILENT, url: 'http://127.0.0.1:1', name: 'test', settings: {} })

/** Adds a coordinator that is alive for the time, in milliseconds. A negative one has stopped. */
export const addReplica = (db: Db, id: string, leaseMs: number, host = TEST_HOST): Promise<void> =>
  renewReplica(db, { id, version: '1.0.0', host, name: null, url: null, settings: null }, leaseMs)
