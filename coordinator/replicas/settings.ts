// How the other coordinators of a database reach this one: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'

const origin = z.string().transform((text, context) => {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol) && text.replace(/\/$/, '') === url.origin) return url.origin
  context.addIssue('must be an http or https URL without a path, such as http://10.0.0.4:7070')
  return z.NEVER
})

export const REPLICA_SETTINGS = defineSettings({
  replicaUrl: {
    variable: 'BOXWOOD_REPLICA_URL',
    default: null,
    shownDefault: 'off',
    description:
      'the URL at which the other [replicas](replicas.md) reach this one; needs `BOXWOOD_DATABASE_URL`, `BOXWOOD_PUBLIC_URL` and `BOXWOOD_AGENT_URL`',
    schema: origin,
  },
})

export type ReplicaSettings = SettingsOf<typeof REPLICA_SETTINGS>
