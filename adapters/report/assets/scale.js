// Which stretch of time is shown, and where on the screen a moment lies.

const SHORTEST = 200; // milliseconds across the whole width
const STRIDES = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  1e3, 2e3, 5e3, 10e3, 15e3, 30e3,
  60e3, 120e3, 300e3, 600e3, 900e3, 1800e3,
  3600e3, 7200e3, 14400e3, 43200e3, 86400e3, 604800e3, 2592000e3, 31536000e3,
];

class Scale {
  constructor(ends) {
    this.ends = ends;
    this.left = 0;
    this.width = 1;
    this.show(0, ends);
  }

  /** Show this stretch, or the nearest one that lies within the run and its margin. */
  show(from, to) {
    const margin = this.ends * 0.02;
    const length = Math.min(Math.max(to - from, SHORTEST), this.ends + 2 * margin);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, -margin), this.ends + margin - length);
    this.to = this.from + length;
  }

  fit() {
    this.show(-this.ends * 0.02, this.ends * 1.02);
  }

  x(time) {
    return this.left + ((time - this.from) / (this.to - this.from)) * this.width;
  }

  time(x) {
    return this.from + ((x - this.left) / this.width) * (this.to - this.from);
  }

  /** Milliseconds per pixel. */
  get grain() {
    return (this.to - this.from) / this.width;
  }

  /** Zoom by a factor above 1 inwards; the moment `time` stays where it is. */
  zoom(factor, time = (this.from + this.to) / 2) {
    const share = (time - this.from) / (this.to - this.from);
    const length = Math.min(Math.max((this.to - this.from) / factor, SHORTEST), this.ends * 1.04);
    const from = time - share * length;
    this.show(from, from + length);
  }

  pan(pixels) {
    const by = pixels * this.grain;
    this.show(this.from + by, this.to + by);
  }

  /** Bring a moment into view. */
  reveal(time) {
    const length = this.to - this.from;
    const edge = length * 0.08;
    if (time < this.from + edge || time > this.to - edge) this.show(time - length / 2, time + length / 2);
  }

  /** The times of the axis, at least `room` pixels apart, and their stride. */
  ticks(room) {
    const stride = STRIDES.find((each) => each / this.grain >= room) ?? STRIDES.at(-1);
    const times = [];
    for (let time = Math.max(0, Math.ceil(this.from / stride) * stride); time <= Math.min(this.to, this.ends); time += stride)
      times.push(time);
    return { times, stride };
  }
}
