// Where the coordinator listens, and how clients and agents reach it: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { ADDED_PATH, addressRanges, addressSchema, file, onOff } from '../base/setting-schemas.ts'

/** Without a slash at its end. */
const baseUrl = z.string().transform((text, context) => {
  const url = URL.parse(text)
  const bare = text.replace(/\/$/, '')
  const path = url?.pathname.replace(/\/$/, '') ?? ''
  if (url && /^https?:$/.test(url.protocol) && ADDED_PATH.test(path) && bare === url.origin + path)
    return bare
  context.addIssue(
    'must be an http or https URL, such as https://boxes.example.com or https://example.com/boxwood; its path has letters, digits and any of ._~- only',
  )
  return z.NEVER
})

export const HTTP_SETTINGS = defineSettings(
  {
    listen: {
      variable: 'BOXWOOD_LISTEN',
      default: '127.0.0.1:7070',
      description:
        'listen host and port; port 0 picks a free port. A start without the variable uses the address of the last one',
      schema: addressSchema,
    },
    publicUrl: {
      variable: 'BOXWOOD_PUBLIC_URL',
      default: null,
      shownDefault: '`http://` and where it listens',
      description: 'the URL at which clients reach the coordinator, with the path that a reverse proxy adds',
      schema: baseUrl,
    },
    agentUrl: {
      variable: 'BOXWOOD_AGENT_URL',
      default: null,
      shownDefault: '`http://` and where it listens',
      description:
        'the URL at which agents reach the coordinator. Local boxes then use it instead of a socket',
      schema: baseUrl,
    },
    tlsListen: {
      variable: 'BOXWOOD_TLS_LISTEN',
      default: null,
      shownDefault: 'off',
      description: 'host and port of a second listener, which serves HTTPS; needs the next two variables',
      schema: addressSchema,
    },
    tlsCert: {
      variable: 'BOXWOOD_TLS_CERT',
      default: null,
      shownDefault: 'none',
      description:
        'the file of the certificate with its chain, in the PEM format; read again when it changes',
      schema: file,
    },
    tlsKey: {
      variable: 'BOXWOOD_TLS_KEY',
      default: null,
      shownDefault: 'none',
      description: 'the file of the private key of the certificate, in the PEM format',
      schema: file,
    },
    trustedProxies: {
      variable: 'BOXWOOD_TRUSTED_PROXIES',
      default: '',
      shownDefault: 'none',
      description:
        'IP addresses and ranges of reverse proxies, separated by commas; their `X-Forwarded-For` is the address of the client',
      schema: addressRanges,
    },
    dashboard: {
      variable: 'BOXWOOD_DASHBOARD',
      default: 'on',
      description: 'on or off; off serves a short text instead of the dashboard',
      schema: onOff,
    },
  },
  (values) => {
    const tls = [values.tlsListen, values.tlsCert, values.tlsKey]
    return tls.includes(null) && tls.some((value) => value !== null)
      ? 'BOXWOOD_TLS_LISTEN, BOXWOOD_TLS_CERT and BOXWOOD_TLS_KEY must be set together.'
      : null
  },
)

export type HttpSettings = SettingsOf<typeof HTTP_SETTINGS>
