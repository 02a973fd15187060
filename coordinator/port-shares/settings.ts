// Whether ports of boxes are shared, and under which host names: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { onOff } from '../base/setting-schemas.ts'

const SHARE_BASE =
  /^(?:(?<scheme>https?):\/\/)?(?<host>(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*)(?<port>:\d{1,5})?\/?$/i

const shareBase = z.string().transform((text, context) => {
  const { scheme, host = '', port = '' } = SHARE_BASE.exec(text)?.groups ?? {}
  const isLocal = /(^|\.)localhost$/i.test(host)
  const url = host === '' ? null : URL.parse(`${scheme ?? (isLocal ? 'http' : 'https')}://${host}${port}`)
  if (url) return url.origin
  context.addIssue(
    'must be host, host:port or an http or https URL without a path, such as boxes.example.com',
  )
  return z.NEVER
})

export const PORT_SHARE_SETTINGS = defineSettings({
  shares: {
    variable: 'BOXWOOD_SHARES',
    default: 'on',
    description: 'on or off; off shares no ports of boxes',
    schema: onOff,
  },
  shareLinks: {
    variable: 'BOXWOOD_SHARE_LINKS',
    default: 'on',
    description: 'on or off; off shares ports of boxes only with members of the workspace',
    schema: onOff,
  },
  shareBase: {
    variable: 'BOXWOOD_SHARE_BASE',
    default: null,
    shownDefault: '`localhost` and the port where it listens',
    description:
      'the domain under which each shared port gets a host name, as `host`, `host:port` or an origin; `https` unless it is `localhost`',
    schema: shareBase,
  },
})

export type PortShareSettings = SettingsOf<typeof PORT_SHARE_SETTINGS>
