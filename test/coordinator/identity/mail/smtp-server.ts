// An SMTP server on this machine that requires a password, for tests of mails.
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'

const USER = 'boxwood'
const PASSWORD = 'p@ss word'

/** @param options.reject rejects every mail with this response */
export async function startSmtpServer(
  t: Test,
  { reject, responseCode = 550 }: { reject?: string; responseCode?: number } = {},
) {
  const mails: { from: string; to: string[]; message: string }[] = []
  const server = new SMTPServer({
    // Without TLS, which needs a certificate.
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onAuth({ username, password }, _session, callback) {
      if (username === USER && password === PASSWORD) callback(null, { user: username })
      else callback(new Error('wrong password'))
    },
    onData(stream, { envelope }, callback) {
      text(stream).then((message) => {
        if (reject !== undefined)
          return callback(Object.assign(new Error(reject + message), { responseCode }))
        mails.push({
          from: envelope.mailFrom ? envelope.mailFrom.address : '',
          to: envelope.rcptTo.map(({ address }) => address),
          message,
        })
        callback()
      }, callback)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(resolve)))
  const { port } = server.server.address() as AddressInfo
  const createUrl = (password: string) => `smtp://${USER}:${encodeURIComponent(password)}@127.0.0.1:${port}`
  return { mails, url: createUrl(PASSWORD), urlWithWrongPassword: createUrl('wrong') }
}
