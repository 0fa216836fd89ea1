//! CUBIC in real numbers and segments, written from RFC 9438 alone.

/// A window in congestion avoidance.
pub(super) struct Model {
    pub(super) cwnd: f64,
    w_max: f64,
    cwnd_prior: f64,
    stage: Option<Stage>,
}

struct Stage {
    start: f64,
    k: f64,
    w_max: f64,
    w_est: f64,
}

impl Model {
    pub(super) fn new(cwnd: f64) -> Self {
        Self {
            cwnd,
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
        }
    }

    /// §4.6, §4.7.
    pub(super) fn lose(&mut self) {
        self.w_max = if self.cwnd < self.w_max {
            self.cwnd * 1.7 / 2.0
        } else {
            self.cwnd
        };
        self.cwnd_prior = self.cwnd;
        self.cwnd = (self.cwnd * 0.7).max(2.0);
        self.stage = None;
    }

    /// §4.2 to §4.5.
    pub(super) fn ack(&mut self, now: f64, srtt: f64, segments: f64) {
        let Self {
            cwnd,
            w_max,
            cwnd_prior,
            ..
        } = *self;
        let stage = self.stage.get_or_insert_with(|| Stage {
            start: now,
            k: ((w_max - cwnd).max(0.0) / 0.4).cbrt(),
            w_max: w_max.max(cwnd),
            w_est: cwnd,
        });
        let segments = segments.min(cwnd);
        let alpha = if stage.w_est < cwnd_prior {
            3.0 * 0.3 / 1.7
        } else {
            1.0
        };
        stage.w_est += alpha * segments / cwnd;
        let curve = |t: f64| 0.4 * (t - stage.k).powi(3) + stage.w_max;
        let t = now - stage.start;
        if curve(t) < stage.w_est {
            self.cwnd = cwnd.max(stage.w_est);
            return;
        }
        let target = curve(t + srtt).clamp(cwnd, 1.5 * cwnd);
        self.cwnd = (cwnd + (target - cwnd) / cwnd * segments).max(stage.w_est);
    }
}
