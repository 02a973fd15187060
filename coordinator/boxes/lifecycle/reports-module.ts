// Stores what agents report: heartbeats, listening ports, and the reports of the other features.

import type { Ingest } from '../../agents/tunnel/reports.ts'
import type { DiskReserve } from '../../db/disk-reserve.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { ReportHandlers } from './apply-reports.ts'
import { createDiskMetric } from './disk-metric.ts'
import { createHeartbeats, type Heartbeats } from './heartbeats.ts'
import { createReportQueue, type ReportQueue } from './report-queue.ts'

export type ReportsModuleContext = ModuleBase & {
  commands: { reportHandler: ReportHandlers['commands'] }
  boxMetrics: { reportHandler: ReportHandlers['metrics'] }
  processSnapshots: { reportHandler: ReportHandlers['processSnapshots'] }
  diskReserve: Pick<DiskReserve, 'isReleased'>
}

export function reportsModule(context: ReportsModuleContext) {
  const { db, clock, log, diskReserve, commands, boxMetrics, processSnapshots } = context
  const heartbeats: Heartbeats = createHeartbeats({ db, clock, log })
  const reports: ReportQueue = createReportQueue(db, {
    commands: commands.reportHandler,
    metrics: boxMetrics.reportHandler,
    processSnapshots: processSnapshots.reportHandler,
  })
  const ingest: Ingest = {
    async apply(boxId, epoch, batch) {
      // The last space is for suspending and deleting boxes. The agents keep their reports and send them again.
      if (diskReserve.isReleased) throw new Error('the disk is full')
      await reports.apply({ boxId, epoch, reports: batch })
    },
    heartbeat: (boxId, vitals) => heartbeats.record(boxId, vitals),
    listeners: (boxId, ports) => heartbeats.recordPorts(boxId, ports),
  }
  return {
    services: { heartbeats, reports, ingest },
    metrics: [createDiskMetric(diskReserve)],
    close: {
      name: 'stop storing reports and store the last heartbeats',
      async run() {
        await reports.close()
        await heartbeats.close()
      },
    },
  } satisfies Module
}
