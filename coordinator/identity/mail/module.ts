// The mailer of the coordinator.

import type { Module, ModuleBase } from '../../http/module.ts'
import type { IdentitySettings } from '../settings.ts'
import { createDefaultSender, createMailer } from './mailer.ts'

export type MailModuleContext = ModuleBase & {
  config: IdentitySettings
  /** `public`: the origin at which clients reach the coordinator. */
  urls: { public: string }
  /** `print` prints a line on stdout. */
  overrides: { print?: (line: string) => void }
}

const printOnStdout = (line: string): void => void process.stdout.write(`${line}\n`)

export function mailModule({ config, log, urls, overrides }: MailModuleContext) {
  const mailer = createMailer({
    smtpUrl: config.smtpUrl,
    from: config.mailFrom ?? createDefaultSender(urls.public),
    log,
    print: overrides.print ?? printOnStdout,
  })
  return { services: { mailer }, close: { name: 'send the last mails', run: mailer.close } } satisfies Module
}
