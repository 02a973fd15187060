// Where the coordinator stores its data and what it logs: environment variables.
import { defineSettings, type SettingsOf } from './define-settings.ts'
import { file, oneOf } from './setting-schemas.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
const LOG_FORMATS = ['auto', 'pretty', 'json'] as const

export const BASE_SETTINGS = defineSettings({
  dataDir: {
    variable: 'BOXWOOD_DATA',
    default: '.boxwood',
    description:
      "the directory of the database, the owner's key and the local boxes; used by one coordinator at a time",
    schema: file,
  },
  masterKeysFile: {
    variable: 'BOXWOOD_MASTER_KEYS',
    default: null,
    shownDefault: '`master-keys` in the data directory',
    description:
      'a file with the master keys, which encrypt secrets in the database; the coordinator never writes it',
    schema: file,
  },
  limitsFile: {
    variable: 'BOXWOOD_LIMITS',
    default: null,
    shownDefault: 'none',
    description: 'a JSON file with limits that are rarely changed; read at the start',
    schema: file,
  },
  logLevel: {
    variable: 'BOXWOOD_LOG',
    default: 'info',
    description: `log level of stderr: ${LOG_LEVELS.join(', ')}`,
    schema: oneOf(LOG_LEVELS),
  },
  logFormat: {
    variable: 'BOXWOOD_LOG_FORMAT',
    default: 'auto',
    description: 'pretty or json; auto is pretty on a terminal, otherwise one JSON object per line',
    schema: oneOf(LOG_FORMATS),
  },
})

export type BaseSettings = SettingsOf<typeof BASE_SETTINGS>
