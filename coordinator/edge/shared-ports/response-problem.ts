// Describes in words why the response of a program could not be forwarded.

/** By the error codes of Node's parser. */
const PROBLEMS: Readonly<Record<string, string>> = {
  HPE_INVALID_CONSTANT: 'it does not begin with a status line such as HTTP/1.1 200 OK',
  HPE_INVALID_VERSION: 'its version is not HTTP/1.0 or HTTP/1.1',
  HPE_INVALID_STATUS: 'its status is not a number of three digits',
  HPE_INVALID_HEADER_TOKEN: 'a header has a character that is not allowed, or continues on the next line',
  HPE_UNEXPECTED_SPACE: 'the first header begins with a space',
  HPE_LF_EXPECTED: 'a CR is not followed by LF',
  HPE_CR_EXPECTED: 'a line of the chunked encoding does not end with CR LF',
  HPE_STRICT: 'the chunked encoding is not valid',
  HPE_INVALID_CHUNK_SIZE: 'the size of a chunk is not valid',
  HPE_INVALID_CONTENT_LENGTH: 'its Content-Length is no number, or it also has a Transfer-Encoding',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'it has several Content-Length headers',
  HPE_INVALID_TRANSFER_ENCODING:
    'it has both Content-Length and Transfer-Encoding, or an encoding that is not known',
  HPE_HEADER_OVERFLOW: 'its headers are larger than 64 KiB',
  HPE_CLOSED_CONNECTION: 'more bytes follow a response with Connection: close',
  ERR_INVALID_CHAR: 'its status line or a header has a control character',
}

/** @returns the predicate of a sentence about the program, such as `closed the connection without a response` */
export function describeResponseProblem(error: unknown): string {
  const { code = '', message = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  if (code.startsWith('HPE_') || Object.hasOwn(PROBLEMS, code))
    return `sent a response that is not valid HTTP: ${PROBLEMS[code] ?? message} (${code})`
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'closed the connection without a complete response'
  return 'closed the connection, or its response is not valid HTTP'
}
