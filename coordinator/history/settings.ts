// How long the history is kept: environment variables.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { positiveInteger } from '../base/setting-schemas.ts'

export const HISTORY_SETTINGS = defineSettings({
  commandDays: {
    variable: 'BOXWOOD_COMMAND_RETENTION_DAYS',
    default: '30',
    description: 'days that a command stays in the history',
    schema: positiveInteger,
  },
})

export type HistorySettings = SettingsOf<typeof HISTORY_SETTINGS>
