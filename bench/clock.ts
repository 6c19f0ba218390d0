/** The clock that all processes of this machine share: instants of one can be taken from those of another. */

/** Microseconds since some instant before all of them began. */
export function nowUs(): number {
  return Number(process.hrtime.bigint()) / 1_000
}
