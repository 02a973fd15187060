// A pass-through that fails as soon as more bytes went through it than may.
import { Transform } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'

export function boundedBytes(limit: number): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) done(new ApiError('payload_too_large', `A transfer holds at most ${limit} bytes.`))
      else done(null, chunk)
    },
  })
}
