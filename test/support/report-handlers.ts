// Handlers of reports for tests of other parts: they store nothing.
import type { ReportHandlers } from '../../coordinator/boxes/lifecycle/apply-reports.ts'

export const noReportHandlers: ReportHandlers = {
  commands: { loadKey: async () => undefined, apply: async () => undefined },
  metrics: { apply: async () => undefined },
  processSnapshots: { apply: async () => undefined },
}
