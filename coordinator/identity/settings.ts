// How people sign in, and how workspaces open and close: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { integerOrZero, oneOf } from '../base/setting-schemas.ts'

const SIGNUP_CHOICES = ['closed', 'open'] as const

const smtpUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== ''
}, 'must be the URL of an SMTP server, such as smtps://user:password@mail.example.com')

const mailFrom = z
  .string()
  .regex(
    /^(?:[^<>"\p{C}]+ <[^\s<>@"]+@[^\s<>@"]+>|[^\s<>@"]+@[^\s<>@"]+)$/u,
    'must be an email address, such as boxwood@example.com or Boxwood <boxwood@example.com>',
  )

export const IDENTITY_SETTINGS = defineSettings({
  smtpUrl: {
    variable: 'BOXWOOD_SMTP_URL',
    default: null,
    shownDefault: 'off',
    description:
      'the URL of the SMTP server for sign-in codes and invitations, with user and password; without it the coordinator prints sign-in codes on its stdout',
    schema: smtpUrl,
    isSecret: true,
  },
  mailFrom: {
    variable: 'BOXWOOD_MAIL_FROM',
    default: null,
    shownDefault: '`boxwood@` and the host of the public URL',
    description: 'the sender of mails',
    schema: mailFrom,
  },
  signup: {
    variable: 'BOXWOOD_SIGNUP',
    default: 'closed',
    description: 'closed or open; open lets anyone with an email address create a workspace',
    schema: oneOf(SIGNUP_CHOICES).transform((value) => value === 'open'),
  },
  purgeDays: {
    variable: 'BOXWOOD_PURGE_DAYS',
    default: '30',
    description:
      'days in which a workspace that was closed can be reopened; then everything of it is deleted; 0: at once',
    schema: integerOrZero,
  },
})

export type IdentitySettings = SettingsOf<typeof IDENTITY_SETTINGS>
