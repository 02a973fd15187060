// Where the audit log may be delivered: environment variables.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { onOff } from '../base/setting-schemas.ts'

export const AUDIT_SETTINGS = defineSettings({
  auditSinkPrivate: {
    variable: 'BOXWOOD_AUDIT_SINK_PRIVATE',
    default: 'off',
    description:
      'on or off; on delivers audit logs also to endpoints that are not on the public internet, such as a collector in your network',
    schema: onOff,
  },
})

export type AuditSettings = SettingsOf<typeof AUDIT_SETTINGS>
