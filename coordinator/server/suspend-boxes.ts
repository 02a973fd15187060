// Suspends the boxes that run without a coordinator, and stops the machines that wait for a box, for `box down`. Prints a SuspendedBoxes as one line of JSON.

import pLimit from 'p-limit'
import { systemClock } from '../../shared/clock.ts'
import { openDataDirectory } from '../base/data-directory.ts'
import { createLogger } from '../base/log/logger.ts'
import { suspendLocalBoxes } from '../boxes/lifecycle/suspend-local-boxes.ts'
import { listLocalBoxRegions } from '../boxes/lookups.ts'
import { openConfiguredDatabase } from '../db/open-configured.ts'
import { openMachineStoppers } from '../providers/open-providers.ts'
import { stopWarmMachines } from '../warm-machines/stop.ts'
import { loadConfig } from './config.ts'

const MAX_CONCURRENT_STOPS = 8

try {
  const config = loadConfig(process.env)
  const log = await createLogger(config, new Map())
  const dataDirectory = await openDataDirectory(config.dataDir)
  const { host } = dataDirectory
  // Fails while a coordinator runs.
  const db = await openConfiguredDatabase(config, dataDirectory, { log, onTaken: () => undefined })
  try {
    const providers = await openMachineStoppers(await listLocalBoxRegions(db, host), {
      dataDir: config.dataDir,
      log,
    })
    const result = await suspendLocalBoxes(
      {
        db,
        clock: systemClock,
        log,
        replica: { host },
        providers,
        canStop: ({ provider }) => provider === 'local',
        tunnels: null,
        machineLimit: pLimit(MAX_CONCURRENT_STOPS),
      },
      'the box was stopped without a coordinator',
    )
    await stopWarmMachines(db, providers, host)
    process.stdout.write(`${JSON.stringify(result)}\n`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
