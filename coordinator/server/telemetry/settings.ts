// The metrics of the coordinator over HTTP: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../../base/define-settings.ts'
import { addressSchema } from '../../base/setting-schemas.ts'

const token = z.string().regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 ASCII characters without spaces')

export const TELEMETRY_SETTINGS = defineSettings({
  metricsListen: {
    variable: 'BOXWOOD_METRICS_LISTEN',
    default: null,
    shownDefault: 'off',
    description:
      'host and port of a second listener, which serves `GET /metrics`; without a token anyone who can connect may read it',
    schema: addressSchema,
  },
  metricsToken: {
    variable: 'BOXWOOD_METRICS_TOKEN',
    default: null,
    shownDefault: 'off',
    description: 'the bearer token of `GET /metrics`, which `BOXWOOD_LISTEN` then serves too',
    schema: token,
    isSecret: true,
  },
})

export type TelemetrySettings = SettingsOf<typeof TELEMETRY_SETTINGS>
