// The life of a box in Docker.
import { testLifeOfABox } from './life-of-a-box.ts'

testLifeOfABox('docker')
