// The XML of STS, version 2011-06-15.

const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'

export class StsError extends Error {
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

type Elements = { [name: string]: string | Elements }

const ENTITIES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' }

const render = (elements: Elements): string =>
  Object.entries(elements)
    .map(([name, content]) => {
      const text =
        typeof content === 'string'
          ? content.replace(/[<>&]/g, (character) => ENTITIES[character] ?? '')
          : render(content)
      return `<${name}>${text}</${name}>`
    })
    .join('')

const REQUEST_ID = 'c6104cbe-af31-11e0-8154-cbc7ccf896c7'

const renderResponse = (action: string, result: Elements): string =>
  `<${action}Response xmlns="${NAMESPACE}">${render({
    [`${action}Result`]: result,
    ResponseMetadata: { RequestId: REQUEST_ID },
  })}</${action}Response>`

export const renderError = ({ code, message }: StsError): string =>
  `<ErrorResponse xmlns="${NAMESPACE}">${render({
    Error: { Type: 'Sender', Code: code, Message: message },
    RequestId: REQUEST_ID,
  })}</ErrorResponse>`

export const renderAssumedRole = (role: {
  arn: string
  roleId: string
  audience: string
  subject: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string
  expiresAt: number
}): string =>
  renderResponse('AssumeRoleWithWebIdentity', {
    SubjectFromWebIdentityToken: role.subject,
    Audience: role.audience,
    AssumedRoleUser: { Arn: role.arn, AssumedRoleId: role.roleId },
    Credentials: {
      AccessKeyId: role.accessKeyId,
      SecretAccessKey: role.secretAccessKey,
      SessionToken: role.sessionToken,
      Expiration: new Date(role.expiresAt).toISOString(),
    },
  })

export const renderCallerIdentity = (role: { arn: string; roleId: string; account: string }): string =>
  renderResponse('GetCallerIdentity', { Arn: role.arn, UserId: role.roleId, Account: role.account })
