// Which database the coordinator uses: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'

const databaseUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1
}, 'must be the URL of a Postgres database, such as postgres://user:password@host:5432/boxwood')

export const DATABASE_SETTINGS = defineSettings({
  databaseUrl: {
    variable: 'BOXWOOD_DATABASE_URL',
    default: null,
    shownDefault: 'a file in the data directory',
    description: 'the URL of a Postgres database',
    schema: databaseUrl,
    isSecret: true,
  },
})

export type DatabaseSettings = SettingsOf<typeof DATABASE_SETTINGS>
