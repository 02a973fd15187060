// An audit log with many events. `npm run chaos` does the same checks with a million.
import t from 'tap'
import { LIMITS } from '../../../shared/limits.ts'
import { checkLargeAuditLog } from '../../support/audit-log-load.ts'

checkLargeAuditLog(t, { sqlite: LIMITS.auditCsvRows + 1000, postgres: 5_000 })
