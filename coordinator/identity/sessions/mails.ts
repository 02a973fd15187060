// The texts of mails with codes.
import type { Mail } from '../mail/mailer.ts'
import { CODE } from './lifetime.ts'

const TEXTS = {
  signIn: {
    subject: 'Boxwood sign-in code',
    purpose: 'Enter this code to sign in to Boxwood.',
  },
  account: {
    subject: 'Boxwood verification code for a new account',
    purpose:
      'Someone has created a Boxwood account for an agent with this email address. The code confirms it.',
  },
  email: {
    subject: 'Boxwood verification code for a new email address',
    purpose: 'Enter this code to use this email address for your Boxwood account.',
  },
} as const

export function createCodeMail(kind: keyof typeof TEXTS, to: string, code: string): Mail {
  const { subject, purpose } = TEXTS[kind]
  const text = [
    `${code}\n`,
    `${purpose} It is valid for ${CODE.validMs / 60_000} minutes and can be used once.`,
    'Do not give this code to anyone. If you did not request it, ignore this mail.',
  ].join('\n')
  return { to, subject, text: `${text}\n`, code }
}

/** Notifies the previous address of a user. */
export const createEmailChangedMail = (to: string, newEmail: string): Mail => ({
  to,
  subject: 'Your email address at Boxwood was changed',
  text: `You now sign in to Boxwood as ${newEmail}. If you did not change it, contact another owner of your workspace.\n`,
})
