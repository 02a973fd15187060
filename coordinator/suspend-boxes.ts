// Suspends the boxes that run without a coordinator, for `box down`. Prints a SuspendedBoxes as one line of JSON.
import { writeSync } from 'node:fs'
import pLimit from 'p-limit'
import { pino } from 'pino'
import { systemClock } from '../shared/clock.ts'
import { createLogDestination } from '../shared/log-destination.ts'
import { loadConfig } from './config.ts'
import { openDataDirectory } from './data-directory.ts'
import { openDatabase } from './db/open.ts'
import { createMachineStopper } from './lifecycle/providers/local/machines.ts'
import { suspendLocalBoxes } from './lifecycle/suspend-local-boxes.ts'

const MAX_CONCURRENT_STOPS = 8

try {
  const config = loadConfig(process.env)
  const log = pino(
    { level: config.logLevel },
    createLogDestination((bytes) => writeSync(2, bytes)),
  )
  const { databaseFile } = await openDataDirectory(config.dataDir)
  // Also the lock of the data directory: fails while a coordinator runs.
  const db = await openDatabase({ kind: 'sqlite', file: databaseFile })
  try {
    const provider = await createMachineStopper({ dataDir: config.dataDir, log })
    const result = await suspendLocalBoxes(
      { db, clock: systemClock, log, provider, tunnels: null, machineLimit: pLimit(MAX_CONCURRENT_STOPS) },
      'the box was stopped without a coordinator',
    )
    process.stdout.write(`${JSON.stringify(result)}\n`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
