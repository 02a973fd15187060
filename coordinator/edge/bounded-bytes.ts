// A pass-through stream that fails when more than a number of bytes pass through it.
import { Transform } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'

export function boundedBytes(limit: number): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) done(new ApiError('payload_too_large', `A transfer is limited to ${limit} bytes.`))
      else done(null, chunk)
    },
  })
}
