// Mails: delivery over SMTP with a password, failures, and codes on stdout without SMTP.
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { createDefaultSender, createMailer } from '../../../../coordinator/identity/mail/mailer.ts'
import { startSmtpServer } from './smtp-server.ts'

const MAIL = {
  to: 'ann@example.com',
  subject: 'Boxwood sign-in code',
  text: 'Your code is BCDF-GHJK.\n',
  code: 'BCDF-GHJK',
}
const FROM = 'Boxwood <boxwood@example.com>'

const createLog = () => {
  const lines: string[] = []
  return { lines, log: { error: (...values: unknown[]) => void lines.push(JSON.stringify(values)) } }
}
const print = () => undefined

/** Returns the URL of a server that accepts connections and never responds. */
async function startSilentServer(t: Test): Promise<string> {
  const silent = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  silent.on('connection', (socket) => t.teardown(() => socket.destroy()))
  t.teardown(() => silent.close())
  const { port } = silent.address() as { port: number }
  return `smtp://127.0.0.1:${port}`
}

t.test('sends a mail over SMTP', async (t) => {
  const smtp = await startSmtpServer(t)
  const { log, lines } = createLog()
  const mailer = createMailer({ smtpUrl: smtp.url, from: FROM, log, print })
  t.equal(await mailer.send(MAIL), 'sent')
  await mailer.close()
  t.same(lines, [])
  t.match(smtp.mails, [
    { from: 'boxwood@example.com', to: [MAIL.to], message: /^From: Boxwood <boxwood@example/ },
  ])
  t.match(smtp.mails[0]?.message, /Subject: Boxwood sign-in code\r\n[\s\S]*\r\n\r\nYour code is BCDF-GHJK\./)
})

t.test('a mail that cannot be sent is logged without the code and the password', async (t) => {
  const smtp = await startSmtpServer(t, { reject: 'rejected: ' })
  const busy = await startSmtpServer(t, { reject: 'rejected: ', responseCode: 451 })
  for (const [smtpUrl, outcome] of [
    [smtp.url, 'refused'],
    [busy.url, 'unavailable'],
    [smtp.urlWithWrongPassword, 'unavailable'],
    ['smtp://127.0.0.1:1', 'unavailable'],
  ] as const) {
    const { log, lines } = createLog()
    const mailer = createMailer({ smtpUrl, from: FROM, log, print })
    t.equal(await mailer.send(MAIL), outcome)
    await mailer.close()
    t.match(lines, [/"code":"\w+".*failed to send a mail/])
    t.notMatch(lines.join(), /BCDF|ann@|wrong/)
  }
})

t.test('close() does not wait for a server that never responds', async (t) => {
  const { log, lines } = createLog()
  const smtpUrl = await startSilentServer(t)
  const mailer = createMailer({ smtpUrl, from: FROM, log, print, closeMs: 10 })
  void mailer.send(MAIL)
  await mailer.close()
  t.equal(lines.length, 1)
})

t.test('the mails of one workspace do not delay those of others', async (t) => {
  const smtp = await startSmtpServer(t)
  const { log } = createLog()
  const mailer = createMailer({ smtpUrl: smtp.url, from: FROM, log, print })
  const invitations = Array.from({ length: 10 }, (_, i) =>
    mailer.send({ to: `${i}@example.com`, subject: 'Invitation', text: '.', workspaceId: 'ws_1' }),
  )
  await Promise.all([...invitations, mailer.send(MAIL)])
  await mailer.close()
  const position = smtp.mails.findIndex(({ to }) => to[0] === MAIL.to)
  t.ok(position >= 0 && position < 5, `the code is mail ${position + 1} of ${smtp.mails.length}`)
})

t.test('mails that wait are not sent after close()', async (t) => {
  const { log, lines } = createLog()
  const smtpUrl = await startSilentServer(t)
  const mailer = createMailer({ smtpUrl, from: FROM, log, print, closeMs: 10 })
  const sending = Array.from({ length: 5 }, (_, i) => mailer.send({ ...MAIL, to: `${i}@example.com` }))
  await mailer.close()
  t.same(await Promise.all(sending), Array(5).fill('unavailable'))
  t.equal(lines.length, 5)
})

t.test('without SMTP, the code is printed', async (t) => {
  const printed: string[] = []
  const { log } = createLog()
  const mailer = createMailer({ smtpUrl: null, from: FROM, log, print: (line) => void printed.push(line) })
  await mailer.send(MAIL)
  await mailer.send({ to: 'bob@example.com', subject: 'Invitation to Boxwood', text: 'Sign in.' })
  await mailer.close()
  t.same(printed, [
    'Boxwood sign-in code for ann@example.com: BCDF-GHJK',
    'No mail to bob@example.com is sent without SMTP: Invitation to Boxwood',
  ])
})

t.test('the default sender has the host of the public URL', async (t) => {
  t.equal(createDefaultSender('https://boxes.example.com:8443'), 'boxwood@boxes.example.com')
  t.equal(createDefaultSender('http://127.0.0.1:7070'), 'boxwood@localhost')
  t.equal(createDefaultSender('http://[::1]:7070'), 'boxwood@localhost')
})
