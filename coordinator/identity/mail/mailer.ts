// Sends mail over SMTP. Without SMTP, the coordinator prints the codes of mails on its stdout.
import { isIP } from 'node:net'
import type { Logger } from 'pino'
import { createFairQueue } from '../../base/fair-queue.ts'

export type Mail = {
  to: string
  subject: string
  text: string
  /** The code that `text` contains. */
  code?: string
  /** The workspace that sends the mail: its mails do not delay those of others. Default: none, for mails to one person. */
  workspaceId?: string
}

/** refused: the SMTP server does not accept the mail. unavailable: another attempt may succeed. */
export type MailOutcome = 'sent' | 'refused' | 'unavailable'

export type Mailer = {
  /**
   * Resolves when the mail is delivered to the SMTP server, or when the failure is logged. Never rejects. A response must
   * not wait for it, and a transaction must not contain it: call it in onCommit.
   */
  send(mail: Mail): Promise<MailOutcome>
  /** Waits for mails that are being sent, up to a limit. */
  close(): Promise<void>
}

export type MailerOptions = {
  /** smtp: or smtps:, with user and password. null: there is no SMTP server. */
  smtpUrl: string | null
  from: string
  log: Pick<Logger, 'error'>
  /** Prints a line on stdout. */
  print(line: string): void
  /** How long close() waits for mails that are being sent. */
  closeMs?: number
}

/** Connections to the SMTP server. */
const MAX_CONNECTIONS = 2
const TIMEOUTS_MS = { connection: 10_000, greeting: 10_000, socket: 20_000 } as const

export const createMailer = (options: MailerOptions): Mailer => {
  const { smtpUrl, ...rest } = options
  return smtpUrl === null ? createPrintingMailer(rest) : createSmtpMailer(smtpUrl, rest)
}

export function createDefaultSender(publicUrl: string): string {
  const { hostname } = new URL(publicUrl)
  const isAddress = hostname.startsWith('[') || isIP(hostname) !== 0
  return `boxwood@${isAddress ? 'localhost' : hostname}`
}

const createPrintingMailer = ({ print }: Pick<MailerOptions, 'print'>): Mailer => ({
  async send({ to, subject, code }) {
    print(
      code === undefined
        ? `No mail to ${to} is sent without SMTP: ${subject}`
        : `${subject} for ${to}: ${code}`,
    )
    return 'sent'
  },
  close: async () => undefined,
})

function createSmtpMailer(
  smtpUrl: string,
  { from, log, closeMs = 3_000 }: Pick<MailerOptions, 'from' | 'log' | 'closeMs'>,
): Mailer {
  // Loaded only where there is an SMTP server.
  const loadTransport = async () =>
    (await import('nodemailer')).createTransport(
      {
        url: smtpUrl,
        pool: true,
        maxConnections: MAX_CONNECTIONS,
        connectionTimeout: TIMEOUTS_MS.connection,
        greetingTimeout: TIMEOUTS_MS.greeting,
        socketTimeout: TIMEOUTS_MS.socket,
        disableFileAccess: true,
        disableUrlAccess: true,
      },
      { from },
    )
  let transport: ReturnType<typeof loadTransport> | null = null
  const queue = createFairQueue(MAX_CONNECTIONS)
  const pending = new Set<Promise<MailOutcome>>()

  async function deliver({ to, subject, text }: Mail): Promise<MailOutcome> {
    try {
      transport ??= loadTransport()
      await (await transport).sendMail({ to: { name: '', address: to }, subject, text })
      return 'sent'
    } catch (error) {
      // The log omits the message of the error: it contains the response of the server, which may quote the mail.
      const { code, command, responseCode } = error as {
        code?: string
        command?: string
        responseCode?: number
      }
      log.error({ code, command, responseCode }, 'failed to send a mail')
      return isRefusal(code, responseCode) ? 'refused' : 'unavailable'
    }
  }

  function reportUnsent({ message: reason }: Error): MailOutcome {
    log.error({ reason }, 'failed to send a mail')
    return 'unavailable'
  }

  return {
    send(mail) {
      const sending = queue
        .run(mail.workspaceId ?? mail.to, () => deliver(mail))
        .catch(reportUnsent)
        .finally(() => pending.delete(sending))
      pending.add(sending)
      return sending
    },
    async close() {
      const { promise: timeout, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, closeMs)
      await Promise.race([Promise.all(pending), timeout])
      clearTimeout(timer)
      queue.clear(new Error('the coordinator is stopping'))
      if (transport !== null) (await transport).close({ force: true })
      await Promise.all(pending)
    },
  }
}

/** The server refuses the recipient or the content permanently. Codes below 500 are temporary (RFC 5321 §4.2.1). */
const isRefusal = (code: string | undefined, responseCode = 500): boolean =>
  (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode >= 500
